"""The policy as JSON Schema, and the list of its keys that everything else here goes by."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from rebalancer.policy.root import RebalancerPolicy, StrategyType, policy_type

KeyPath = tuple[str | int, ...]
"""Keys from the root down, as they are spelled in YAML; places in a list as numbers."""

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_TYPES = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}
_LIMITS = {
    "minimum": "of at least {}",
    "exclusiveMinimum": "above {}",
    "maximum": "of at most {}",
    "exclusiveMaximum": "below {}",
    "minLength": "of length {} or more",
    "maxLength": "of length {} or less",
    "pattern": "matching {}",
}


class Key(NamedTuple):
    """A key of the policy: a section with keys of its own, or one that holds a value."""

    path: KeyPath
    schema: Mapping[str, Any]
    """The key's own part of the schema."""
    is_section: bool
    types: frozenset[str]
    """JSON types that its value may have."""
    allowed: str
    """What its value must be, in words."""


def json_schema(strategies: Mapping[str, StrategyType]) -> dict[str, Any]:
    """The JSON Schema of a policy file when these strategies are installed."""
    return {"$schema": DIALECT, **policy_type(strategies).model_json_schema()}


def keys(policy: type[RebalancerPolicy]) -> dict[KeyPath, Key]:
    """All keys in their order, each section before its own keys."""
    root = policy.model_json_schema()
    return {key.path: key for key in _keys(root, root, ())}


def dotted(path: KeyPath) -> str:
    """The path on one line, whatever somebody has put into a key."""
    return ".".join(name if name.isprintable() else ascii(name) for name in map(str, path))


def _keys(section: Mapping[str, Any], root: Mapping[str, Any], above: KeyPath) -> Iterator[Key]:
    for name, reference in section["properties"].items():
        schema = _resolved(reference, root)
        options = [_resolved(option, root) for option in schema.get("anyOf", [schema])]
        key = Key(
            path=(*above, name),
            schema=schema,
            is_section="properties" in schema,
            types=frozenset(option["type"] for option in options if "type" in option),
            allowed=" or ".join(filter(None, map(_in_words, options))),
        )
        yield key
        if key.is_section:
            yield from _keys(schema, root, key.path)


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema with the definition that it refers to, its own entries first."""
    if "$ref" not in schema:
        return schema
    return {**root["$defs"][schema["$ref"].removeprefix("#/$defs/")], **schema}


def _in_words(schema: Mapping[str, Any]) -> str:
    if "const" in schema:
        return str(schema["const"])
    if "enum" in schema:
        return " or ".join(", ".join(map(str, schema["enum"])).rsplit(", ", 1))
    limits = [words.format(schema[name]) for name, words in _LIMITS.items() if name in schema]
    return " ".join([_TYPES.get(schema.get("type", ""), ""), " and ".join(limits)]).strip()
