"""NodeUnschedulable: a cordoned node takes only pods that tolerate the cordon's taint."""

import numpy as np

from rebalancer.model.keys import UNSCHEDULABLE_TAINT
from rebalancer.model.objects import Pod, Taint
from rebalancer.scheduling.filters.base import Filter
from rebalancer.scheduling.matching import tolerates
from rebalancer.scheduling.state import BoolArray, ClusterState

_CORDON = Taint(key=UNSCHEDULABLE_TAINT, effect="NoSchedule")


def _allowed(pod: Pod, state: ClusterState) -> BoolArray:
    if any(tolerates(toleration, _CORDON) for toleration in pod.tolerations):
        return np.ones(len(state.nodes), np.bool_)
    return ~state.is_unschedulable


def _reasons(_pod: Pod, _state: ClusterState, _node: int) -> tuple[str, ...]:
    return ("node is cordoned (unschedulable)",)


NODE_UNSCHEDULABLE = Filter("NodeUnschedulable", _allowed, _reasons)
