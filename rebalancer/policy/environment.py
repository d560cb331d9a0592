"""Environment variables that override keys of the policy.

A variable is the key's path in capitals, keys apart by two underscores and words by one:
`execution.budget.maxPerCycle` is REBALANCER_EXECUTION__BUDGET__MAX_PER_CYCLE.
"""

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

from pydantic_core import from_json

from rebalancer.policy.problems import Problem, nearest
from rebalancer.policy.schema import Key, KeyPath

PREFIX = "REBALANCER_"

NOT_POLICY = frozenset({"REBALANCER_METRICS_PORT", "REBALANCER_POLICY"})
"""Variables with the prefix that the command line reads itself."""

# For each Service of the namespace the kubelet sets such variables in every pod
# (pkg/kubelet/envvars/envvars.go), and a Service may well be called `rebalancer`.
_OF_A_SERVICE = re.compile(
    r".*_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?"
    r"|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)"
)


class Override(NamedTuple):
    variable: str
    value: object
    """As JSON has it."""


def variable_of(path: KeyPath) -> str:
    """The name of the variable that overrides the key."""
    words = (re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", str(name)).upper() for name in path)
    return PREFIX + "__".join(words)


def overrides(
    environ: Mapping[str, str], keys: Mapping[KeyPath, Key], ignored: Collection[str]
) -> tuple[dict[KeyPath, Override], list[Problem]]:
    """The keys that the environment sets, and a problem for each variable that sets none.

    `apiVersion` and `kind` say what a file is, so no variable sets them.
    """
    key_of = {
        variable_of(path): key for path, key in keys.items() if len(path) > 1 and not key.is_section
    }
    found: dict[KeyPath, Override] = {}
    problems: list[Problem] = []
    for variable in sorted(name for name in environ if name.startswith(PREFIX)):
        if key := key_of.get(variable):
            found[key.path] = Override(variable, _value(environ[variable], key))
        elif variable not in ignored and not _OF_A_SERVICE.fullmatch(variable):
            problems.append(_unknown(variable, key_of))
    return found, problems


def _value(text: str, key: Key) -> object:
    """The text itself where the key takes one, else what it says as JSON, if it is JSON."""
    if "string" in key.types and not (text == "null" and "null" in key.types):
        return text
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError:
        return text


def _unknown(variable: str, known: Collection[str]) -> Problem:
    suggestion = nearest(variable, known)
    hint = f"did you mean {suggestion}?" if suggestion else "unset it"
    return Problem(
        f"no key of the policy has this variable; {hint}",
        variables=(variable,),
        suggestion=suggestion,
    )
