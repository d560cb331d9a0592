"""The holds on nodes: which a goal needs, which it has, and which are left over."""

from collections.abc import Sequence

from rebalancer.cluster.protocols import Hold
from rebalancer.model.keys import GOAL_UID
from rebalancer.model.objects import ObjectKey, Pod
from rebalancer.model.plan import Goal, Move
from rebalancer.model.snapshot import Snapshot
from rebalancer.planning.context import PlanningContext
from rebalancer.scheduling.migration_deadline import deadline_seconds


def hold_for(
    goal: Goal, moves: Sequence[Move], snapshot: Snapshot, context: PlanningContext
) -> Hold:
    """The lock pod for a goal; VMs that its own moves bring to the node are let in."""
    arriving = (move.vmi_uid for move in moves if move.target == goal.node)
    pending = next(
        pod for pod in snapshot.launchers_by_vmi[goal.subject.uid] if pod.node_name is None
    )
    return Hold(
        name=f"hold-{goal.subject.uid}",
        namespace=context.execution.namespace,
        node_name=goal.node,
        beneficiary_uid=goal.subject.uid,
        admitted_uids=(goal.subject.uid, *arriving),
        priority_class_name=pending.priority_class_name,
        lifetime_seconds=_longest_seconds(moves, snapshot, context),
        image=context.execution.hold.image,
    )


def _longest_seconds(moves: Sequence[Move], snapshot: Snapshot, context: PlanningContext) -> int:
    """Every move one after the other, each waiting and running as long as it may."""
    configuration = snapshot.migration_configuration
    return context.execution.bind_timeout_seconds + sum(
        context.execution.start_timeout_seconds
        + deadline_seconds(snapshot.vmi_by_key[move.vmi], configuration)
        for move in moves
    )


def hold_of(goal: Goal, snapshot: Snapshot) -> ObjectKey | None:
    """The hold that an earlier run has left for the goal."""
    pods = _locks(snapshot)
    return next((pod.key for pod in pods if pod.labels[GOAL_UID] == goal.subject.uid), None)


def left_over(
    snapshot: Snapshot, goals: Sequence[Goal], moves: Sequence[Move], namespace: str
) -> list[ObjectKey]:
    """Holds of ours that none of these goals can use: for another goal or node, or too narrow."""
    return [
        pod.key
        for pod in _locks(snapshot)
        if pod.namespace == namespace and not any(_serves(pod, goal, moves) for goal in goals)
    ]


def _serves(lock: Pod, goal: Goal, moves: Sequence[Move]) -> bool:
    if lock.labels[GOAL_UID] != goal.subject.uid:
        return False
    if not goal.node:
        return True
    arriving = {move.vmi_uid for move in moves if move.target == goal.node}
    return lock.node_name == goal.node and arriving <= _admitted(lock)


def _admitted(lock: Pod) -> set[str]:
    return {
        uid
        for term in lock.pod_anti_affinity
        if term.selector
        for requirement in term.selector.requirements
        for uid in requirement.values
    }


def _locks(snapshot: Snapshot) -> list[Pod]:
    """A launcher pod never has this label, so what has it is a lock pod."""
    return [pod for pod in snapshot.pods if GOAL_UID in pod.labels and not pod.is_terminating]
