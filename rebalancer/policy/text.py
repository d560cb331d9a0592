"""A policy as YAML with comments: the default file, and the policy in force."""

import math
import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from rebalancer.policy.file import BUILT_IN
from rebalancer.policy.root import RebalancerPolicy, StrategyType, policy_type
from rebalancer.policy.schema import Key, KeyPath, keys

_HEADER = """\
# yaml-language-server: $schema=policy.schema.json
#
# The rebalancer's policy: every key with its default. Only apiVersion and kind must be there.
#
# An environment variable overrides a key. Its name is the key's path in capitals, keys apart by two
# underscores and words by one: REBALANCER_EXECUTION__BUDGET__MAX_PER_CYCLE is
# execution.budget.maxPerCycle.
#
# `rebalancer policy validate FILE` checks a policy; `rebalancer policy show FILE` shows the one in
# force.

"""
_WIDTH = 100


def default_text(strategies: Mapping[str, StrategyType]) -> str:
    """The default policy file: every key, what it is for and what it may be."""
    policy = policy_type(strategies)
    values = _values(policy.model_validate(BUILT_IN.values))
    lines = (
        f"{_explanation(key)}{_line(key, values[key.path])}\n" for key in keys(policy).values()
    )
    return _HEADER + "".join(lines)


def text_in_force(policy: RebalancerPolicy, origins: Mapping[KeyPath, str]) -> str:
    """The policy with a comment on each value that is not the default: where it comes from."""
    values = _values(policy)
    changed = changes(policy, origins)
    lines = (
        _line(key, values[key.path])
        + (f"  # {changed[key.path]}" if key.path in changed else "")
        + "\n"
        for key in keys(type(policy)).values()
    )
    return "".join(lines)


def changes(policy: RebalancerPolicy, origins: Mapping[KeyPath, str]) -> dict[KeyPath, str]:
    """The keys whose values are not the defaults, with the origins of the values."""
    values = _values(policy)
    defaults = _values(type(policy).model_validate(BUILT_IN.values))
    return {
        path: origins[path]
        for path, key in keys(type(policy)).items()
        if not key.is_section and path in origins and values[path] != defaults[path]
    }


def _values(policy: RebalancerPolicy) -> dict[KeyPath, Any]:
    """The value of each key, as JSON has it."""
    return dict(_flat(policy.model_dump(mode="json", by_alias=True), ()))


def _flat(values: Mapping[str, Any], above: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    for name, value in values.items():
        yield (*above, name), value
        if isinstance(value, dict):
            yield from _flat(value, (*above, name))


def _explanation(key: Key) -> str:
    """What stands above a key: its description and what it may be."""
    indent = "  " * (len(key.path) - 1)
    is_choice = not key.is_section and "const" not in key.schema
    allowed = f"{_in_capitals(key)}." if is_choice else ""
    text = " ".join(filter(None, [key.schema.get("description", ""), allowed]))
    comment = textwrap.fill(
        text,
        width=_WIDTH,
        initial_indent=f"{indent}# ",
        subsequent_indent=f"{indent}# ",
        break_on_hyphens=False,
    )
    gap = "\n" if key.is_section and len(key.path) == 1 else ""
    return f"{gap}{comment}\n" if text else gap


def _in_capitals(key: Key) -> str:
    """What a value may be, as the beginning of a sentence; values that are listed stay as is."""
    return key.allowed if "enum" in key.schema else f"{key.allowed[:1].upper()}{key.allowed[1:]}"


def _line(key: Key, value: object) -> str:
    indent = "  " * (len(key.path) - 1)
    shown = "" if key.is_section and value else f" {_in_flow_style(value)}"
    return f"{indent}{key.path[-1]}:{shown}"


class _Dumper(yaml.SafeDumper):
    """Quotes every string that YAML 1.1 or 1.2 could take for something else."""


def _represent_string(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    is_word = re.fullmatch(r"[A-Za-z][A-Za-z0-9_./:-]*", text)
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if is_word else '"')


_Dumper.add_representer(str, _represent_string)


def _in_flow_style(value: object) -> str:
    text: str = yaml.dump(
        value, Dumper=_Dumper, default_flow_style=True, width=math.inf, allow_unicode=True
    )
    return text.removesuffix("...\n").strip()
