"""NodeResourcesFit: every resource that the pod names, its pod slot included, must be there."""

import numpy as np

from rebalancer.model.objects import Pod
from rebalancer.model.quantity import format_amount
from rebalancer.scheduling.filters.base import Filter
from rebalancer.scheduling.state import BoolArray, ClusterState


def _allowed(pod: Pod, state: ClusterState) -> BoolArray:
    """A resource of which the pod asks nothing is not looked at, even when over-committed.

    Source: kube-scheduler pkg/scheduler/framework/plugins/noderesources/fit.go, fitsRequest.
    """
    allowed = np.ones(len(state.nodes), np.bool_)
    for resource, amount in pod.requests.items():
        if amount:
            allowed &= state.headroom(resource) >= amount
    return allowed


def _reasons(pod: Pod, state: ClusterState, node: int) -> tuple[str, ...]:
    reasons = []
    for resource, amount in sorted(pod.requests.items()):
        headroom = int(state.headroom(resource)[node])
        if amount and headroom < amount:
            allocatable = int(state.allocatable(resource)[node])
            reasons.append(
                f"{resource}: needs {amount} ({format_amount(amount, resource)}),"
                f" headroom {format_amount(headroom, resource)}"
                f" of {format_amount(allocatable, resource)}"
            )
    return tuple(reasons)


NODE_RESOURCES_FIT = Filter("NodeResourcesFit", _allowed, _reasons)
