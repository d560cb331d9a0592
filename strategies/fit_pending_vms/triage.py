"""What can be said of a Pending VM before any thought of migrations."""

from collections.abc import Sequence
from datetime import timedelta

import numpy as np
from msgspec.structs import replace

from rebalancer.model.keys import GOAL_UID
from rebalancer.model.objects import Migration, Pod
from rebalancer.model.plan import MOVES_UNDER_WAY, Reason, Verdict
from rebalancer.model.snapshot import Snapshot
from rebalancer.scheduling.feasibility import Feasibility, evaluate
from rebalancer.scheduling.migration_deadline import is_overdue
from rebalancer.scheduling.narrowing import narrowed
from rebalancer.scheduling.state import BoolArray, ClusterState
from rebalancer_strategies.fit_pending_vms.settings import FitPendingVMsSettings

Finding = tuple[Verdict, tuple[Reason, ...]]


def pending_launchers(snapshot: Snapshot) -> list[Pod]:
    """Launcher pods without a node, the most important first: by priority, then age.

    Target pods of others' migrations, such as an evacuation by KubeVirt, wait for room as well.
    Those of ours go where their plan has made it.
    """
    foreign = {each.uid for each in snapshot.migrations_in_flight if GOAL_UID not in each.labels}
    pending = [
        pod
        for pod in snapshot.pods
        if pod.vmi_uid
        and pod.node_name is None
        and (pod.migration_uid is None or pod.migration_uid in foreign)
        and not pod.is_finished
        and not pod.is_terminating
    ]
    return sorted(pending, key=lambda pod: (-pod.priority, str(pod.created_at or ""), pod.key))


def triage(
    pod: Pod, feasibility: Feasibility, snapshot: Snapshot, settings: FitPendingVMsSettings
) -> Finding | None:
    """A verdict that needs no plan, or None when making room is the question."""
    return (
        _not_ours(pod)
        or _too_early(pod, snapshot, settings)
        or _under_way(pod, snapshot)
        or _fits(feasibility)
        or _room_is_being_left(feasibility)
        or _ruled_out(feasibility)
    )


def _finding(verdict: Verdict, code: str, message: str) -> Finding:
    return verdict, (Reason(code, message),)


def _not_ours(pod: Pod) -> Finding | None:
    if pod.is_gated:
        return _finding(
            Verdict.NOT_ABOUT_ROOM,
            "scheduling-gated",
            "its pod is held by a scheduling gate; whoever set the gate must lift it",
        )
    if pod.scheduler_name != "default-scheduler":
        return _finding(
            Verdict.NOT_ABOUT_ROOM,
            "foreign-scheduler",
            f"it is placed by scheduler {pod.scheduler_name}, whose rules are not known here",
        )
    if pod.unmodelled:
        return _finding(
            Verdict.UNPROVEN,
            "unmodelled",
            f"its placement depends on what is not modelled: {', '.join(pod.unmodelled)}",
        )
    return None


def _too_early(pod: Pod, snapshot: Snapshot, settings: FitPendingVMsSettings) -> Finding | None:
    if pod.unschedulable_since is None:
        return _finding(
            Verdict.WAITING, "not-yet-tried", "the scheduler has not found it unschedulable"
        )
    ready_at = pod.unschedulable_since + timedelta(seconds=settings.grace_seconds)
    if ready_at > snapshot.taken_at:
        return _finding(
            Verdict.WAITING,
            "grace",
            f"unschedulable for less than graceSeconds ({settings.grace_seconds});"
            f" looked at from {ready_at.isoformat(timespec='seconds')}",
        )
    return None


def _under_way(pod: Pod, snapshot: Snapshot) -> Finding | None:
    if pod.nominated_node_name:
        return _finding(
            Verdict.WAITING,
            "nominated",
            f"the scheduler is preempting other pods for it on node {pod.nominated_node_name}",
        )
    for migration in snapshot.migrations_in_flight:
        is_for_it = migration.labels.get(GOAL_UID) == pod.vmi_uid
        if is_for_it and not is_overdue(migration, snapshot):
            return _finding(
                Verdict.WAITING,
                MOVES_UNDER_WAY,
                f"migration {migration.namespace}/{migration.name} is making room for it",
            )
    return None


def _fits(feasibility: Feasibility) -> Finding | None:
    nodes = _names(feasibility)
    if not nodes:
        return None
    return Verdict.FITS, tuple(
        Reason("fits", "has room now; the scheduler can place it", node=name) for name in nodes
    )


def _room_is_being_left(feasibility: Feasibility) -> Finding | None:
    """Whether it fits once the pods have gone that are on their way out already."""
    pod, state = feasibility.pod, feasibility.state
    leaving = [each for each in _leaving(state.snapshot) if each.node_name in state.index]
    if not leaving:
        return None
    # Most often there will not be room even then, which is quick to see.
    indexes = np.flatnonzero(_has_room_without(leaving, feasibility)).tolist()
    perhaps = {state.nodes[index].name for index in indexes}
    if not perhaps:
        return None
    uids = {other.uid for other in leaving}
    part = narrowed(state.snapshot, [pod], perhaps)
    staying = tuple(other for other in part.pods if other.uid not in uids)
    after = evaluate(pod, ClusterState(replace(part, pods=staying)))
    nodes = perhaps.intersection(_names(after))
    if not nodes:
        return None
    return Verdict.WAITING, tuple(
        Reason(
            "pod-leaving",
            f"fits once pod {other.key} has left",
            node=other.node_name or "",
            object=str(other.key),
        )
        # What leaves another node may have barred the whole zone.
        for other in [each for each in leaving if each.node_name in nodes] or leaving
    )


def _has_room_without(leaving: Sequence[Pod], feasibility: Feasibility) -> BoolArray:
    """Nodes that may take the pod for all that moves no pods, and have room once these are gone."""
    state = feasibility.state
    node_of_leaving = [state.index[each.node_name or ""] for each in leaving]
    has_room = feasibility.allowed_wherever_pods_are
    for resource, amount in feasibility.pod.requests.items():
        left = state.headroom(resource)
        released = [each.requests.get(resource, 0) for each in leaving]
        np.add.at(left, node_of_leaving, released)
        has_room &= (left >= amount) | (amount == 0)
    return has_room


def _leaving(snapshot: Snapshot) -> list[Pod]:
    """Pods being deleted, and those that a migration under way takes their VM from."""
    sources = [
        pod
        for migration in snapshot.migrations_in_flight
        if not is_overdue(migration, snapshot)
        for pod in _source_pods(migration, snapshot)
    ]
    found = {pod.uid: pod for pod in (*snapshot.terminating_pods, *sources) if pod.node_name}
    return sorted(found.values(), key=lambda pod: snapshot.position_of_pod[pod.uid])


def _source_pods(migration: Migration, snapshot: Snapshot) -> list[Pod]:
    """None while the target pod has no node: such a migration may never get under way."""
    vmi = snapshot.vmi_by_key.get(migration.vmi_key)
    launchers = snapshot.launchers_by_vmi.get(vmi.uid, ()) if vmi else ()
    if not any(pod.migration_uid == migration.uid and pod.node_name for pod in launchers):
        return []
    return [pod for pod in launchers if pod.migration_uid != migration.uid]


def _ruled_out(feasibility: Feasibility) -> Finding | None:
    if feasibility.allowed_wherever_pods_are.any():
        return None
    nodes = range(len(feasibility.state.nodes))
    return Verdict.NOT_ABOUT_ROOM, (
        Reason("no-eligible-node", "no node would take it, however much room there were"),
        *(reason for node in nodes for reason in feasibility.reasons(node)),
    )


def _names(feasibility: Feasibility) -> tuple[str, ...]:
    nodes = zip(feasibility.state.nodes, feasibility.feasible, strict=True)
    return tuple(node.name for node, is_feasible in nodes if is_feasible)
