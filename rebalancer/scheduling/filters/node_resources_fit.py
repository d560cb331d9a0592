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


def shortfall(pod: Pod, resource: str, state: ClusterState, node: int) -> str:
    """How much the pod asks for and how much is left there."""
    amount = pod.requests[resource]
    headroom = int(state.headroom(resource)[node])
    allocatable = int(state.allocatable(resource)[node])
    return (
        f"{resource}: needs {amount} ({format_amount(amount, resource)}),"
        f" headroom {format_amount(headroom, resource)} of {format_amount(allocatable, resource)}"
    )


def _reasons(pod: Pod, state: ClusterState, node: int) -> tuple[str, ...]:
    return tuple(
        shortfall(pod, resource, state, node)
        for resource, amount in sorted(pod.requests.items())
        if amount and state.headroom(resource)[node] < amount
    )


NODE_RESOURCES_FIT = Filter("NodeResourcesFit", _allowed, _reasons)
