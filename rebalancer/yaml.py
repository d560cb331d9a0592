"""YAML 1.2 to plain values, with the place of whatever cannot be read.

PyYAML reads YAML 1.1, where `Off`, `no` and dates become other things than the strings that
Kubernetes and people mean. Here only the 1.2 core schema turns plain scalars into null, booleans
and numbers; `.inf` and `.nan`, which JSON lacks, stay strings.
"""

import math
import re
from collections.abc import Iterator

import yaml

from rebalancer.errors import InputError

try:
    from yaml import CBaseLoader as _BaseLoader
except ImportError:  # PyYAML was built without libyaml: the same, slower
    from yaml import BaseLoader as _BaseLoader  # type: ignore[assignment]

_TAG = "tag:yaml.org,2002:"
_BOOLEANS = {"true": True, "false": False}

MAX_EXPANSION = 10
"""Aliases may blow a text up to this many values per character, with a million always allowed;
more is an attack, or a mistake."""


class _CoreLoader(_BaseLoader):
    """Composes nodes with the tags of the core schema, yaml.org/spec/1.2.2/#103-core-schema."""


for _name, _pattern, _first_characters in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", list("-+.0123456789")),
):
    _CoreLoader.add_implicit_resolver(
        _TAG + _name, re.compile(rf"(?:{_pattern})\Z"), _first_characters
    )


def compose_documents(text: str, name: str) -> list[yaml.Node]:
    """The documents as nodes, which know their lines and columns; empty documents are left out.

    Raises: InputError, with `name`, line and column, if the text is no YAML.
    """
    try:
        return list(_documents(_CoreLoader(text)))
    except yaml.MarkedYAMLError as error:
        problem = error.problem or error.context or "not YAML"
        raise error_at(error.problem_mark or error.context_mark, name, problem) from error
    except yaml.reader.ReaderError as error:
        raise InputError(f"{name}: {_character_problem(error, text)}") from error
    except UnicodeEncodeError as error:
        raise InputError(f"{name}: {error.reason} at character {error.start}") from error
    except RecursionError as error:
        raise InputError(f"{name}: nested too deeply") from error


def load_documents(text: str, name: str) -> list[object]:
    """The documents as dict, list, str, int, float, bool and None; keys are always strings.

    Raises: InputError, with `name`, line and column, if the text is no YAML, a key occurs twice
    in one mapping, or a tag or merge key (`<<`) asks for what plain data cannot hold.
    """
    limit = max(1_000_000, MAX_EXPANSION * len(text))
    try:
        return [_Values(name, limit).of(node) for node in compose_documents(text, name)]
    except RecursionError as error:
        raise InputError(f"{name}: nested too deeply") from error


def error_at(mark: yaml.Mark | None, name: str, problem: str) -> InputError:
    """An error at a place in a file, lines and columns counted from 1."""
    if mark is None:
        return InputError(f"{name}: {problem}")
    return InputError(f"{name}:{mark.line + 1}:{mark.column + 1}: {problem}")


def _documents(loader: _CoreLoader) -> Iterator[yaml.Node]:
    while loader.check_node():
        node = loader.get_node()
        if node is not None and not _is_empty(node):
            yield node


def _is_empty(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == f"{_TAG}null" and not node.value


def _character_problem(error: yaml.reader.ReaderError, text: str) -> str:
    line = text.encode().count(b"\n", 0, error.position) + 1  # libyaml counts bytes
    return f"line {line}: {error.reason}"


class _Values:
    """Turns the nodes of one document into values."""

    def __init__(self, name: str, limit: int) -> None:
        self._name = name
        self._left = limit
        self._open: set[int] = set()

    def of(self, node: yaml.Node) -> object:
        self._left -= 1
        if self._left < 0:
            raise self._error(node, "aliases blow this document up beyond all measure")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if id(node) in self._open:
            raise self._error(node, "contains itself")
        self._open.add(id(node))
        value = self._mapping(node) if isinstance(node, yaml.MappingNode) else self._list(node)
        self._open.remove(id(node))
        return value

    def _mapping(self, node: yaml.MappingNode) -> dict[str, object]:
        self._check_tag(node, "map")
        values: dict[str, object] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise self._error(key_node, "a key must be a string")
            key = key_node.value
            if key == "<<" and not key_node.style:
                raise self._error(key_node, "merge keys (<<) are not read; write the values out")
            if key in values:
                raise self._error(key_node, f"the key {key!r} occurs twice in this mapping")
            values[key] = self.of(value_node)
        return values

    def _list(self, node: yaml.Node) -> list[object]:
        self._check_tag(node, "seq")
        return [self.of(item) for item in node.value]

    def _scalar(self, node: yaml.ScalarNode) -> object:
        text: str = node.value
        try:
            match node.tag.removeprefix(_TAG):
                case "str":
                    return text
                case "null":
                    return None
                case "bool":
                    return _BOOLEANS[text.lower()]
                case "int":
                    return _integer(text)
                case "float":
                    return _float(text)
        except (ValueError, KeyError) as error:
            kind = node.tag.removeprefix(_TAG)
            raise self._error(node, f"{text[:80]!r} is no usable {kind}") from error
        raise self._error(node, f"the tag {node.tag} is not read")

    def _check_tag(self, node: yaml.Node, expected: str) -> None:
        if node.tag != _TAG + expected:
            raise self._error(node, f"the tag {node.tag} is not read")

    def _error(self, node: yaml.Node, problem: str) -> InputError:
        return error_at(node.start_mark, self._name, problem)


def _integer(text: str) -> int:
    if text.startswith(("0o", "0x")):
        return int(text[2:], 8 if text[1] == "o" else 16)
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value
