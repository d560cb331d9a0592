"""TaintToleration: NoSchedule and NoExecute taints bar, PreferNoSchedule only costs."""

import numpy as np

from rebalancer.model.objects import Pod, Taint
from rebalancer.scheduling.filters.base import Filter
from rebalancer.scheduling.matching import tolerates
from rebalancer.scheduling.state import BoolArray, ClusterState


def untolerated(pod: Pod, taints: tuple[Taint, ...], *effects: str) -> tuple[Taint, ...]:
    """The taints with one of these effects that the pod does not tolerate."""
    return tuple(
        taint
        for taint in taints
        if taint.effect in effects and not any(tolerates(t, taint) for t in pod.tolerations)
    )


def _allowed(pod: Pod, state: ClusterState) -> BoolArray:
    allowed = np.ones(len(state.nodes), np.bool_)
    for taints, nodes in state.nodes_by_taints.items():
        if untolerated(pod, taints, "NoSchedule", "NoExecute"):
            allowed[nodes] = False
    return allowed


def _reasons(pod: Pod, state: ClusterState, node: int) -> tuple[str, ...]:
    taints = untolerated(pod, state.nodes[node].taints, "NoSchedule", "NoExecute")
    return tuple(
        f"taint {taint.key}{'=' if taint.value else ''}{taint.value}:{taint.effect} not tolerated"
        for taint in taints
    )


TAINT_TOLERATION = Filter("TaintToleration", _allowed, _reasons)
