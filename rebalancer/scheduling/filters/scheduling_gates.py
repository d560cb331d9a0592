"""SchedulingGates: a gated pod goes nowhere until whoever set the gate lifts it."""

from rebalancer.model.objects import Pod
from rebalancer.scheduling.filters.base import Filter
from rebalancer.scheduling.state import BoolArray, ClusterState


def _allowed(pod: Pod, state: ClusterState) -> BoolArray:
    return state.mask(not pod.is_gated for _ in state.nodes)


def _reasons(_pod: Pod, _state: ClusterState, _node: int) -> tuple[str, ...]:
    return ("the pod is held by a scheduling gate",)


SCHEDULING_GATES = Filter("SchedulingGates", _allowed, _reasons)
