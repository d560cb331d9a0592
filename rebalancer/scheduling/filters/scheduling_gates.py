"""SchedulingGates: a gated pod goes nowhere until whoever set the gate lifts it."""

import numpy as np

from rebalancer.model.objects import Pod
from rebalancer.scheduling.filters.base import Filter
from rebalancer.scheduling.state import BoolArray, ClusterState


def _allowed(pod: Pod, state: ClusterState) -> BoolArray:
    return np.full(len(state.nodes), not pod.is_gated)


def _reasons(_pod: Pod, _state: ClusterState, _node: int) -> tuple[str, ...]:
    return ("the pod is held by a scheduling gate",)


SCHEDULING_GATES = Filter("SchedulingGates", _allowed, _reasons)
