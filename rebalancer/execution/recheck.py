"""The last look before a migration is created: is everything still as the plan took it to be?"""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from rebalancer.model.objects import Pod
from rebalancer.model.plan import Goal, Move
from rebalancer.model.snapshot import Snapshot
from rebalancer.planning.context import PlanningContext
from rebalancer.planning.movers import refusal_of
from rebalancer.scheduling.feasibility import evaluate
from rebalancer.scheduling.state import ClusterState
from rebalancer.scheduling.target_pod import target_pod


def surprise(
    move: Move,
    goal: Goal,
    goal_moves: Sequence[Move],
    snapshot: Snapshot,
    context: PlanningContext,
) -> str | None:
    """What is not as planned, or None when the move may start.

    `goal_moves`: all moves of the goal, those done included.
    """
    return (
        _vm_changed(move, goal_moves, snapshot, context)
        or _target_changed(move, snapshot)
        or (_goal_changed(goal, goal_moves, snapshot) if goal.is_for_vm else None)
    )


def is_open(goal: Goal, snapshot: Snapshot) -> bool:
    """Whether the launcher pod that the goal is for, if it is for one, still waits for a node."""
    return not goal.is_for_vm or _waiting_pod(goal, snapshot) is not None


def bound_node(goal: Goal, snapshot: Snapshot) -> str | None:
    """The node that the goal's launcher pod has got, None while it has none."""
    return next((pod.node_name for pod in _launchers(goal, snapshot) if pod.node_name), None)


def _waiting_pod(goal: Goal, snapshot: Snapshot) -> Pod | None:
    waiting = (
        pod
        for pod in _launchers(goal, snapshot)
        if pod.node_name is None and not pod.is_terminating
    )
    return next(waiting, None)


def _launchers(goal: Goal, snapshot: Snapshot) -> Iterator[Pod]:
    """Of the VM, where it is being migrated the target pod alone."""
    for pod in snapshot.launchers_by_vmi.get(goal.subject.uid, ()):
        if not goal.migration_uid or pod.migration_uid == goal.migration_uid:
            yield pod


def unsettled(move: Move, goal_moves: Sequence[Move], snapshot: Snapshot) -> str | None:
    """What those that the move waits for have not left yet, although they have succeeded.

    KubeVirt may call a migration succeeded before the pod that it has left has ended.
    """
    for earlier in goal_moves:
        vmi = snapshot.vmi_by_uid.get(earlier.vmi_uid)
        if earlier.id not in move.after or vmi is None or vmi.node_name == earlier.source:
            continue
        for pod in snapshot.launchers_by_vmi.get(earlier.vmi_uid, ()):
            if pod.node_name == earlier.source:
                return f"pod {pod.key} has not ended on {earlier.source} yet"
    return None


def _vm_changed(
    move: Move, goal_moves: Sequence[Move], snapshot: Snapshot, context: PlanningContext
) -> str | None:
    vmi = snapshot.vmi_by_key.get(move.vmi)
    if vmi is None or vmi.uid != move.vmi_uid:
        return f"VM {move.vmi} is gone"
    if vmi.node_name != move.source:
        return f"VM {move.vmi} is on {vmi.node_name}, no longer on {move.source}"
    if any(other.vmi_uid == move.vmi_uid and other.id in move.after for other in goal_moves):
        # The VM is on a detour of this plan; its own move here is no reason to leave it in peace.
        execution = context.execution.model_copy(update={"cooldown_seconds": 0})
        context = replace(context, execution=execution)
    barred = refusal_of(vmi, snapshot, context)
    return f"VM {move.vmi} may no longer be moved: {barred.message}" if barred else None


def _target_changed(move: Move, snapshot: Snapshot) -> str | None:
    state = ClusterState(snapshot)
    if move.target not in state.index or move.source not in state.index:
        return f"node {move.target} or {move.source} is gone"
    vmi = snapshot.vmi_by_key[move.vmi]
    source_pod = snapshot.launchers_by_vmi[vmi.uid][0]
    pod = target_pod(vmi, source_pod, snapshot)
    index = state.index[move.target]
    if state.is_draining[index]:
        return f"node {move.target} is being drained now"
    feasibility = evaluate(pod, state)
    if feasibility.feasible[index]:
        return None
    why = "; ".join(reason.message for reason in feasibility.reasons(index))
    return f"node {move.target} no longer takes VM {move.vmi}: {why}"


def _goal_changed(goal: Goal, goal_moves: Sequence[Move], snapshot: Snapshot) -> str | None:
    """Whether the goal's VM would still fit once all that is to leave its node has left."""
    pending = _waiting_pod(goal, snapshot)
    if pending is None:
        return f"VM {goal.subject} is no longer waiting for room"
    last = {move.vmi_uid: move.target for move in goal_moves}
    leaving_vmis = {
        move.vmi_uid
        for move in goal_moves
        if move.source == goal.node and last[move.vmi_uid] != goal.node
    }
    leaving = {
        pod.uid
        for pod in snapshot.pods
        if pod.vmi_uid in leaving_vmis and pod.node_name == goal.node
    }
    # Its own pod holds room where its migration pins it to a node.
    absent = {*leaving, pending.uid}
    staying = tuple(pod for pod in snapshot.pods if absent.isdisjoint({pod.uid, pod.attached_to}))
    state = ClusterState(replace(snapshot, pods=staying))
    index = state.index.get(goal.node)
    if index is None:
        return f"node {goal.node} is gone"
    feasibility = evaluate(pending, state)
    if feasibility.feasible[index]:
        return None
    why = "; ".join(reason.message for reason in feasibility.reasons(index))
    return f"VM {goal.subject} would no longer fit on {goal.node}: {why}"
