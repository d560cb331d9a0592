"""A policy file as it was read, before anything in it is judged."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import yaml

from rebalancer.errors import InputError
from rebalancer.policy.problems import PolicyError, Problem
from rebalancer.policy.schema import KeyPath
from rebalancer.yaml import compose_documents, load_documents


class PolicyFile(NamedTuple):
    name: str | None
    """None for the built-in policy."""
    values: Mapping[str, object]
    lines: Mapping[KeyPath, int]
    """Of each key and list item, counted from 1."""


BUILT_IN = PolicyFile(None, {"apiVersion": "rebalancer/v1alpha1", "kind": "RebalancerPolicy"}, {})
"""Says what it is and nothing else, so that every default holds."""


def read_file(path: Path) -> PolicyFile:
    """Raises: InputError if the file cannot be read, is no YAML, or not one mapping."""
    name = str(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: is not UTF-8 (byte {error.start})") from error
    documents = load_documents(text, name)
    nodes = compose_documents(text, name)
    if not documents:
        raise PolicyError([Problem("is empty; apiVersion and kind are needed", file=name)])
    if len(documents) > 1:
        message = "a second document begins here; a policy is a single one"
        raise PolicyError([Problem(message, file=name, line=_line(nodes[1]))])
    if not isinstance(documents[0], dict):
        message = "a policy must be a mapping with apiVersion, kind and sections"
        raise PolicyError([Problem(message, file=name, line=_line(nodes[0]))])
    return PolicyFile(name, documents[0], {(): _line(nodes[0]), **dict(_lines(nodes[0], ()))})


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _lines(node: yaml.Node, path: KeyPath) -> Iterator[tuple[KeyPath, int]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield (*path, key.value), _line(key)
            yield from _lines(value, (*path, key.value))
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield (*path, index), _line(item)
            yield from _lines(item, (*path, index))
