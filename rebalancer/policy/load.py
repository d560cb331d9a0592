"""The policy in force: the defaults, overridden by a file, overridden by the environment."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_settings import InitSettingsSource

from rebalancer.policy.environment import NOT_POLICY, Override, overrides
from rebalancer.policy.explanation import Explainer
from rebalancer.policy.file import BUILT_IN, PolicyFile, read_file
from rebalancer.policy.problems import PolicyError
from rebalancer.policy.root import RebalancerPolicy, StrategyType, policy_type
from rebalancer.policy.schema import KeyPath, keys


class ReadPolicy(NamedTuple):
    policy: RebalancerPolicy
    origins: Mapping[KeyPath, str]
    """Of each key set in the file (`name:line`) or the environment (the variable)."""


def load_policy(
    path: Path | None,
    strategies: Mapping[str, StrategyType],
    environ: Mapping[str, str],
    ignored: Collection[str] = NOT_POLICY,
) -> RebalancerPolicy:
    """The policy of a file, or the built-in one, with what the environment overrides.

    `ignored` are REBALANCER_ variables that belong to something else than the policy.

    Raises: PolicyError with all problems; InputError if the file cannot be read or is no YAML.
    """
    return read_policy(path, strategies, environ, ignored).policy


def read_policy(
    path: Path | None,
    strategies: Mapping[str, StrategyType],
    environ: Mapping[str, str],
    ignored: Collection[str] = NOT_POLICY,
) -> ReadPolicy:
    """As `load_policy`, with the origin of what is set."""
    file = read_file(path) if path else BUILT_IN
    policy = policy_type(_in_order_of(file, strategies))
    known = keys(policy)
    overridden, problems = overrides(environ, known, ignored)
    sources = (
        InitSettingsSource(policy, _nested(overridden, file)),
        InitSettingsSource(policy, dict(file.values)),
    )
    try:
        # Handed over as sources, no key of the file can be taken for an argument of BaseSettings;
        # mypy knows only the fields as arguments.
        result = policy(_build_sources=(sources, {}))  # type: ignore[call-arg]
    except ValidationError as error:
        explainer = Explainer(file, known, overridden)
        raise PolicyError([*explainer.problems(error), *problems]) from error
    if problems:
        raise PolicyError(problems)
    origins = {key: f"{file.name}:{line}" for key, line in file.lines.items()}
    origins |= {key: override.variable for key, override in overridden.items()}
    return ReadPolicy(result, origins)


def _in_order_of(
    file: PolicyFile, strategies: Mapping[str, StrategyType]
) -> Mapping[str, StrategyType]:
    """The strategies that the file names in its order, then the others in theirs."""
    section = file.values.get("strategies")
    named = [name for name in section if name in strategies] if isinstance(section, dict) else []
    return {name: strategies[name] for name in [*named, *strategies]}


def _nested(overridden: Mapping[KeyPath, Override], file: PolicyFile) -> dict[str, Any]:
    """The values as the file would hold them."""
    values: dict[str, Any] = {}
    for path, override in overridden.items():
        # Something else than a section in the file is a mistake that no variable may hide.
        if _has_room_for(path, file.values):
            section = values
            for name in path[:-1]:
                section = section.setdefault(str(name), {})
            section[str(path[-1])] = override.value
    return values


def _has_room_for(path: KeyPath, values: object) -> bool:
    for name in path:
        if not isinstance(values, dict):
            return False
        values = values.get(name, {})
    return True
