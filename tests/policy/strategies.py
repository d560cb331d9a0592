"""Strategies that stand in for installed ones."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from pydantic import Field

from rebalancer.policy.model import Mode, Section
from rebalancer.policy.root import RebalancerPolicy


class StrategyStub(NamedTuple):
    settings_type: type[Section]
    default_mode: Mode = Mode.OFF
    contradictions: Callable[[Any, RebalancerPolicy], Sequence[str]] = lambda _settings, _policy: ()


class FitPendingVMsSettings(Section):
    grace_seconds: int = Field(default=15, ge=0, description="How long a VM must have waited.")


class Target(Section):
    """What to leave free."""

    share: float = Field(default=0.25, ge=0, le=1, description="Of each node's memory.")


class SpreadHeadroomSettings(Section):
    """Settings of kinds that the rebalancer's own sections have none of."""

    zones: list[str] = Field(default=[], description="Only in these.")
    target: Target = Target()
    limit: int | Literal["none"] = "none"


STRATEGIES = {
    "FitPendingVMs": StrategyStub(FitPendingVMsSettings, Mode.AUTOMATIC),
    "SpreadHeadroom": StrategyStub(SpreadHeadroomSettings),
}
