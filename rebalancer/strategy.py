"""The contract of a strategy, and the registry of those that are installed.

A strategy is a name, a typed settings section and a pure function from a view of the cluster and
settings to proposals. It makes no request, reads no clock and keeps nothing between calls.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points

from msgspec import Struct

from rebalancer.errors import InputError
from rebalancer.model.plan import Goal, Proposal
from rebalancer.model.snapshot import Snapshot
from rebalancer.planning.view import View
from rebalancer.policy.model import Mode, Section
from rebalancer.policy.root import RebalancerPolicy

ENTRY_POINT_GROUP = "rebalancer.strategies"


Objection = Callable[[Goal, Snapshot, Section], str | None]


def _no_objection(_goal: Goal, _snapshot: Snapshot, _settings: Section) -> None:
    return None


Contradictions = Callable[[Section, RebalancerPolicy], Sequence[str]]


def _no_contradictions(_settings: Section, _policy: RebalancerPolicy) -> Sequence[str]:
    return ()


class Strategy(Struct, frozen=True):
    """What the entry point of a strategy refers to."""

    name: str
    """As it stands in the policy; the same as the entry point's."""
    settings_type: type[Section]
    propose: Callable[[View, Section], Sequence[Proposal]]
    """Proposals in the order of their importance; each later one builds on the earlier ones."""
    default_mode: Mode = Mode.OFF
    contradictions: Contradictions = _no_contradictions
    """What in its settings does not go with the rest of the policy, each in words; asked when a
    policy is read, unless the strategy is off."""
    rank: int = 1000
    """Its place among the strategies that the policy does not name: lower ones are asked first."""
    objection: Objection = _no_objection
    """Asked before each migration for a goal of its own, on a fresh reading of what concerns it:
    why the goal is no longer wanted, or None."""


def load_strategies() -> Mapping[str, Strategy]:
    """All installed strategies by name, in the order of their ranks, then of their names.

    Raises: InputError if one cannot be imported, is no Strategy, or a name is taken twice.
    """
    strategies: dict[str, Strategy] = {}
    for entry_point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda e: e.name):
        origin = f"strategy {entry_point.name} ({entry_point.value})"
        try:
            strategy = entry_point.load()
        except Exception as error:
            raise InputError(f"{origin} cannot be imported: {error}") from error
        if not isinstance(strategy, Strategy):
            found = type(strategy).__name__
            raise InputError(f"{origin} must be a rebalancer.strategy.Strategy, not a {found}")
        if strategy.name != entry_point.name:
            raise InputError(f"{origin} calls itself {strategy.name}; both names must be the same")
        if strategy.name in strategies:
            raise InputError(f"{origin} is installed twice; uninstall one of the two packages")
        strategies[strategy.name] = strategy
    return dict(sorted(strategies.items(), key=lambda item: item[1].rank))
