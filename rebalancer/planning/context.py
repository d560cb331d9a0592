"""What planners and strategies are told besides the snapshot."""

from collections.abc import Mapping

from msgspec import Struct

from rebalancer.model.objects import ObjectKey
from rebalancer.model.plan import Refusal
from rebalancer.policy.measured_load import MeasuredLoadPolicy
from rebalancer.policy.model import CostPolicy, ExecutionPolicy, PlanningPolicy


class PlanningContext(Struct, frozen=True):
    """The policy, and what this cycle has learnt."""

    planning: PlanningPolicy = PlanningPolicy()
    cost: CostPolicy = CostPolicy()
    execution: ExecutionPolicy = ExecutionPolicy()
    measured_load: MeasuredLoadPolicy = MeasuredLoadPolicy()
    avoided: Mapping[ObjectKey, Refusal] = {}
    """VMs whose migration the cluster has refused in this cycle, and why."""
