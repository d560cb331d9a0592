"""The scheduler's message about a pod that fits nowhere.

Source: kube-scheduler v1.36.3, FitError in pkg/scheduler/framework/types.go, the plugins' reasons
in pkg/scheduler/framework/plugins, Preempt in pkg/scheduler/framework/preemption/preemption.go.
"""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from msgspec.structs import replace

from rebalancer.model.objects import Pod
from rebalancer.scheduling.feasibility import Feasibility
from rebalancer.scheduling.filters import INTER_POD_AFFINITY, NODE_RESOURCES_FIT
from rebalancer.scheduling.state import ClusterState

_UNTOLERATED = "node(s) had untolerated taint(s)"
_REASONS = {
    "NodeUnschedulable": "node(s) were unschedulable",
    # The node lifecycle controller taints a node that is not ready.
    "NodeReady": _UNTOLERATED,
    "TaintToleration": _UNTOLERATED,
    "NodeAffinity": "node(s) didn't match Pod's node affinity/selector",
    "VolumeBinding": "node(s) didn't match PersistentVolume's node affinity",
}
_PLUGIN_ORDER = (
    "NodeUnschedulable",
    "NodeReady",
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesFit",
    "VolumeBinding",
    "InterPodAffinity",
)


class _Status(NamedTuple):
    """What the first plugin that rejects a node says."""

    reasons: tuple[str, ...]
    is_resolvable: bool
    """Whether the scheduler thinks that other pods' leaving could help."""


def fit_error(feasibility: Feasibility) -> str:
    statuses = [_status(feasibility, node) for node in range(len(feasibility.has_room))]
    reasons = _counted(reason for status in statuses for reason in status.reasons)
    available = f"0/{len(statuses)} nodes are available:"
    # Two plugins report after the filters; of pods without resource claims, which are all that
    # come here, DynamicResources always says the same.
    preemption = _preemption(feasibility.pod, statuses, available)
    return f"{available} {reasons}. no new claims to deallocate, preemption: {preemption}"


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
    if first == INTER_POD_AFFINITY.name:
        return _affinity(feasibility.pod, feasibility.state, node)
    return _Status((_REASONS[first],), is_resolvable=False)


def _insufficient(pod: Pod, state: ClusterState, node: int) -> _Status:
    lacking = [r for r, amount in pod.requests.items() if amount > state.headroom(r)[node]]
    return _Status(
        tuple("Too many pods" if r == "pods" else f"Insufficient {r}" for r in lacking),
        is_resolvable=all(
            r == "pods" or pod.requests[r] <= state.allocatable(r)[node] for r in lacking
        ),
    )


def _affinity(pod: Pod, state: ClusterState, node: int) -> _Status:
    """Whose terms bar the node: found by leaving out kinds of them, in the plugin's order."""
    snapshot = state.snapshot
    pods = tuple(replace(other, pod_anti_affinity=()) for other in snapshot.pods)
    only_own_terms = ClusterState(replace(snapshot, pods=pods))
    only_affinity = replace(pod, pod_anti_affinity=())
    if not INTER_POD_AFFINITY.allowed(only_affinity, only_own_terms)[node]:
        return _Status(("node(s) didn't match pod affinity rules",), is_resolvable=False)
    if not INTER_POD_AFFINITY.allowed(pod, only_own_terms)[node]:
        return _Status(("node(s) didn't match pod anti-affinity rules",), is_resolvable=True)
    reason = "node(s) didn't satisfy existing pods anti-affinity rules"
    return _Status((reason,), is_resolvable=True)
