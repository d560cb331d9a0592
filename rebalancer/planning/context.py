"""What the policy says to planners and strategies."""

from msgspec import Struct

from rebalancer.policy.model import CostPolicy, ExecutionPolicy, PlanningPolicy


class PlanningContext(Struct, frozen=True):
    planning: PlanningPolicy = PlanningPolicy()
    cost: CostPolicy = CostPolicy()
    execution: ExecutionPolicy = ExecutionPolicy()
