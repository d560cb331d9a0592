"""The holds on nodes: which a goal needs, which it has, and which are left over."""

import hashlib
from collections.abc import Iterable, Sequence

from rebalancer.cluster.protocols import Hold
from rebalancer.model.keys import GOAL_UID
from rebalancer.model.objects import ObjectKey, Pod
from rebalancer.model.plan import Goal, Move
from rebalancer.model.snapshot import Snapshot
from rebalancer.planning.context import PlanningContext
from rebalancer.planning.outlook import held_nodes
from rebalancer.policy.model import HoldKind
from rebalancer.scheduling.migration_deadline import deadline_seconds
from rebalancer.scheduling.state import ClusterState


def holds_for(
    goal: Goal, moves: Sequence[Move], snapshot: Snapshot, context: PlanningContext
) -> list[Hold]:
    """The lock pods that a goal needs while its moves are carried out; the landing node's first.

    A node on the way that has no pod slot to spare for a lock goes without: should a newcomer
    get its room, that shows before the next move, and is planned anew.
    """
    if not moves or context.execution.hold.kind is HoldKind.NONE:
        return []
    if goal.is_for_vm:
        launchers = snapshot.launchers_by_vmi[goal.subject.uid]
        beneficiary = next(pod for pod in launchers if pod.node_name is None)
    else:
        movers = [p for m in moves for p in snapshot.launchers_by_vmi.get(m.vmi_uid, ())]
        if not movers:
            return []
        beneficiary = max(movers, key=lambda pod: pod.priority)
    return [
        Hold(
            name=f"hold-{goal.subject.uid}-{hashlib.sha256(node.encode()).hexdigest()[:8]}",
            namespace=context.execution.namespace,
            node_name=node,
            beneficiary_uid=goal.subject.uid,
            admitted_uids=admitted,
            priority_class_name=beneficiary.priority_class_name,
            lifetime_seconds=_longest_seconds(moves, snapshot, context),
            image=context.execution.hold.image,
        )
        for node, admitted in held_nodes(goal, moves, snapshot).items()
        if node == goal.node or _spare_slots(node, snapshot) > len(admitted)
    ]


def _spare_slots(node: str, snapshot: Snapshot) -> int:
    state = ClusterState(snapshot)
    return int(state.headroom("pods")[state.index[node]]) if node in state.index else 0


def _longest_seconds(moves: Sequence[Move], snapshot: Snapshot, context: PlanningContext) -> int:
    """Every move one after the other, each waiting and running as long as it may."""
    return context.execution.bind_timeout_seconds + sum(
        context.execution.start_timeout_seconds
        + deadline_seconds(snapshot.vmi_by_key[move.vmi], snapshot)
        for move in moves
    )


def holds_of(goal: Goal, snapshot: Snapshot) -> list[ObjectKey]:
    """The holds that an earlier run has left for the goal."""
    return [pod.key for pod in _locks(snapshot) if pod.labels[GOAL_UID] == goal.subject.uid]


def left_over(
    snapshot: Snapshot, adopted: Iterable[Goal], wanted: Iterable[Hold], namespace: str
) -> list[ObjectKey]:
    """Holds of ours that are neither for a goal that is adopted nor among those wanted now."""
    adopted_uids = {goal.subject.uid for goal in adopted}
    wanted_as = {(hold.key, hold.node_name, frozenset(hold.admitted_uids)) for hold in wanted}
    return [
        pod.key
        for pod in _locks(snapshot)
        if pod.namespace == namespace
        and pod.labels[GOAL_UID] not in adopted_uids
        and (pod.is_finished or (pod.key, pod.node_name, _admitted(pod)) not in wanted_as)
    ]


def _admitted(lock: Pod) -> frozenset[str]:
    return frozenset(
        uid
        for term in lock.pod_anti_affinity
        if term.selector
        for requirement in term.selector.requirements
        for uid in requirement.values
    )


def _locks(snapshot: Snapshot) -> list[Pod]:
    """A launcher pod never has this label, so what has it is a lock pod."""
    return [pod for pod in snapshot.pods if GOAL_UID in pod.labels and not pod.is_terminating]
