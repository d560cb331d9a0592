"""NodeName: a pod that names its node is for that node only."""

import numpy as np

from rebalancer.model.objects import Pod
from rebalancer.scheduling.filters.base import Filter
from rebalancer.scheduling.state import BoolArray, ClusterState


def _allowed(pod: Pod, state: ClusterState) -> BoolArray:
    if pod.node_name is None:
        return np.ones(len(state.nodes), np.bool_)
    return state.mask(node.name == pod.node_name for node in state.nodes)


def _reasons(pod: Pod, _state: ClusterState, _node: int) -> tuple[str, ...]:
    return (f"the pod is for node {pod.node_name}",)


NODE_NAME = Filter("NodeName", _allowed, _reasons)
