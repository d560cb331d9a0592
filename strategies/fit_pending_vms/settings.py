"""What an administrator can decide about FitPendingVMs."""

from pydantic import Field

from rebalancer.policy.model import Section


class FitPendingVMsSettings(Section):
    grace_seconds: int = Field(
        default=15,
        ge=0,
        description="A VM must have been unschedulable this long before anything moves for it.",
    )
    max_cost_seconds: float | None = Field(
        default=None,
        gt=0,
        description="A VM whose cheapest plan costs more waits; unset, no plan is too dear.",
    )
