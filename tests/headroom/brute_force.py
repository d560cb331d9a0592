"""Whether VMs can be started again, by trying everything with the scheduler's own filters."""

from collections.abc import Iterable

from msgspec.structs import replace

from rebalancer.model.objects import ObjectKey, Pod
from rebalancer.model.snapshot import Snapshot
from rebalancer.scheduling.feasibility import evaluate
from rebalancer.scheduling.state import ClusterState


def can_all_start(vms: Iterable[ObjectKey], lost: Iterable[str], snapshot: Snapshot) -> bool:
    """Whether there are nodes for all of them, without any that is lost or not ready."""
    gone = {*lost, *(node.name for node in snapshot.nodes if not node.is_ready)}
    launchers = [snapshot.launchers_by_vmi[snapshot.vmi_by_key[key].uid][0] for key in sorted(vms)]
    left = replace(
        snapshot,
        nodes=tuple(node for node in snapshot.nodes if node.name not in gone),
        pods=tuple(pod for pod in snapshot.pods if pod.node_name not in gone),
    )
    return _can_start([_anew(pod) for pod in launchers], left)


def _anew(pod: Pod) -> Pod:
    return replace(pod, uid=f"{pod.uid}-anew", node_name=None, phase="Pending")


def _can_start(pods: list[Pod], snapshot: Snapshot) -> bool:
    if not pods:
        return True
    first, *others = pods
    feasible = evaluate(first, ClusterState(snapshot)).feasible
    return any(
        _can_start(others, replace(snapshot, pods=(*snapshot.pods, _started(first, node.name))))
        for node, is_feasible in zip(snapshot.nodes, feasible, strict=True)
        if is_feasible
    )


def _started(pod: Pod, node: str) -> Pod:
    return replace(pod, node_name=node, phase="Running")
