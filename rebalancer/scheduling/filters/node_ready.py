"""NodeReady: our own rule, for the moments before a node that is not ready gets its taint."""

from rebalancer.model.objects import Pod
from rebalancer.scheduling.filters.base import Filter
from rebalancer.scheduling.state import BoolArray, ClusterState


def _allowed(_pod: Pod, state: ClusterState) -> BoolArray:
    return state.is_ready


def _reasons(_pod: Pod, _state: ClusterState, _node: int) -> tuple[str, ...]:
    return ("node is not ready",)


NODE_READY = Filter("NodeReady", _allowed, _reasons)
