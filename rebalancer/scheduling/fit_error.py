"""The scheduler's message about a pod that fits nowhere.

Source: kube-scheduler v1.36.3, FitError in pkg/scheduler/framework/types.go, the plugins' reasons
in pkg/scheduler/framework/plugins, Preempt in pkg/scheduler/framework/preemption/preemption.go.
"""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from rebalancer.model.objects import Pod
from rebalancer.scheduling.claimed_volumes import existing_volumes, volumes_to_make
from rebalancer.scheduling.feasibility import Feasibility
from rebalancer.scheduling.filters import NODE_RESOURCES_FIT
from rebalancer.scheduling.filters.inter_pod_affinity import (
    meets_own_affinity,
    meets_own_anti_affinity,
)
from rebalancer.scheduling.filters.pod_topology_spread import skews
from rebalancer.scheduling.filters.volume_binding import reaches
from rebalancer.scheduling.state import ClusterState

_UNTOLERATED = "node(s) had untolerated taint(s)"
_SPREAD = "node(s) didn't match pod topology spread constraints"
_UNRESOLVABLE = {
    "SchedulingGates": "node(s) are not looked at while the pod is gated",
    "NodeUnschedulable": "node(s) were unschedulable",
    # The node lifecycle controller taints a node that is not ready.
    "NodeReady": _UNTOLERATED,
    "NodeName": "node(s) didn't match the requested node name",
    "TaintToleration": _UNTOLERATED,
    "NodeAffinity": "node(s) didn't match Pod's node affinity/selector",
    "VolumeZone": "node(s) had no available volume zone",
}
_RESOLVABLE = {
    "NodePorts": "node(s) didn't have free ports for the requested pod ports",
    "VolumeRestrictions": (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode"
        " already in-use by another pod"
    ),
    "NodeVolumeLimits": "node(s) exceed max volume count",
}
_PLUGIN_ORDER = (
    "SchedulingGates",
    "NodeUnschedulable",
    "NodeReady",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
)


class _Status(NamedTuple):
    """What the first plugin that rejects a node says."""

    reasons: tuple[str, ...]
    is_resolvable: bool
    """Whether the scheduler thinks that other pods' leaving could help."""


def fit_error(feasibility: Feasibility) -> str:
    """The whole message."""
    statuses = _statuses(feasibility, range(len(feasibility.state.nodes)))
    available = f"0/{len(statuses)} nodes are available:"
    # Two plugins report after the filters; of pods without resource claims, which are all that
    # come here, DynamicResources always says the same.
    preemption = _preemption(feasibility.pod, statuses, available)
    after = f"no new claims to deallocate, preemption: {preemption}"
    return f"{available} {_reasons(statuses)}. {after}"


def grouped_reasons(feasibility: Feasibility, nodes: Iterable[int]) -> str:
    """What bars the pod from how many of the nodes, as in `3 Insufficient memory`.

    Empty where it is barred from none.
    """
    return _reasons(_statuses(feasibility, nodes))


def _statuses(feasibility: Feasibility, nodes: Iterable[int]) -> list[_Status]:
    """Of those that do not take the pod."""
    feasible = feasibility.feasible
    return [_status(feasibility, node) for node in nodes if not feasible[node]]


def _reasons(statuses: list[_Status]) -> str:
    return _counted(reason for status in statuses for reason in status.reasons)


def _preemption(pod: Pod, statuses: list[_Status], available: str) -> str:
    if not pod.can_preempt:
        return "not eligible due to preemptionPolicy=Never."
    reasons = _counted(
        "No preemption victims found for incoming pod"
        if status.is_resolvable
        else "Preemption is not helpful for scheduling"
        for status in statuses
    )
    return f"{available} {reasons}."


def _counted(reasons: Iterable[str]) -> str:
    return ", ".join(sorted(f"{count} {reason}" for reason, count in Counter(reasons).items()))


def _status(feasibility: Feasibility, node: int) -> _Status:
    rejected_by = {rule.name for rule, mask in feasibility.masks if not mask[node]}
    if not feasibility.has_room[node]:
        rejected_by.add(NODE_RESOURCES_FIT.name)
    first = min(rejected_by, key=_PLUGIN_ORDER.index)
    if first == NODE_RESOURCES_FIT.name:
        return _insufficient(feasibility.pod, feasibility.state, node)
    if first == "VolumeBinding":
        return _volumes(feasibility.pod, feasibility.state, node)
    if first == "PodTopologySpread":
        return _spread(feasibility.pod, feasibility.state, node)
    if first == "InterPodAffinity":
        return _affinity(feasibility.pod, feasibility.state, node)
    if first in _RESOLVABLE:
        return _Status((_RESOLVABLE[first],), is_resolvable=True)
    return _Status((_UNRESOLVABLE[first],), is_resolvable=False)


def _insufficient(pod: Pod, state: ClusterState, node: int) -> _Status:
    lacking = [r for r, n in pod.requests.items() if n and n > state.headroom(r)[node]]
    return _Status(
        tuple("Too many pods" if r == "pods" else f"Insufficient {r}" for r in lacking),
        is_resolvable=all(
            r == "pods" or pod.requests[r] <= state.allocatable(r)[node] for r in lacking
        ),
    )


def _volumes(pod: Pod, state: ClusterState, node: int) -> _Status:
    reasons = []
    if not reaches(existing_volumes(pod, state.snapshot), state)[node]:
        reasons.append("node(s) didn't match PersistentVolume's node affinity")
    if not reasons or not reaches(volumes_to_make(pod, state.snapshot), state)[node]:
        reasons.append("node(s) didn't find available persistent volumes to bind")
    return _Status(tuple(reasons), is_resolvable=False)


def _spread(pod: Pod, state: ClusterState, node: int) -> _Status:
    barring = next(constraint for constraint, _, mask in skews(pod, state) if not mask[node])
    if state.domains(barring.topology_key)[node] < 0:
        return _Status((f"{_SPREAD} (missing required label)",), is_resolvable=False)
    return _Status((_SPREAD,), is_resolvable=True)


def _affinity(pod: Pod, state: ClusterState, node: int) -> _Status:
    if not meets_own_affinity(pod, state)[node]:
        return _Status(("node(s) didn't match pod affinity rules",), is_resolvable=False)
    if not meets_own_anti_affinity(pod, state)[node]:
        return _Status(("node(s) didn't match pod anti-affinity rules",), is_resolvable=True)
    reason = "node(s) didn't satisfy existing pods anti-affinity rules"
    return _Status((reason,), is_resolvable=True)
