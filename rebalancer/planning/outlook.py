"""The cluster as a later goal must see it once a proposal has been accepted."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from rebalancer.model.change import Change
from rebalancer.model.keys import CREATED_BY, HOSTNAME
from rebalancer.model.objects import (
    LabelSelector,
    Migration,
    Pod,
    PodAffinityTerm,
    Requirement,
)
from rebalancer.model.plan import Goal, Move, Proposal, Verdict
from rebalancer.model.snapshot import Snapshot
from rebalancer.scheduling.target_pod import target_pod


def change_by(proposal: Proposal, snapshot: Snapshot) -> Change:
    """Every move is under way, its room taken on both nodes, and the nodes with new room are held.

    What the moves will free counts for nothing, so a later goal's moves never wait for these. A
    VM that needs no moves has its place as well, where the scheduler is expected to put it.
    """
    goal = proposal.goal
    bound: tuple[Pod, ...] = ()
    if goal.is_for_vm and goal.node and goal.verdict in {Verdict.PLANNED, Verdict.FITS}:
        launchers = snapshot.launchers_by_vmi[goal.subject.uid]
        pending = next(pod for pod in launchers if pod.node_name is None)
        bound = (pending.bound_to(goal.node),)
    if not proposal.moves:
        return Change(bound=bound)
    locks = (
        lock_pod(f"hold-{goal.subject.uid}-{node}", node, admitted)
        for node, admitted in held_nodes(goal, proposal.moves, snapshot).items()
    )
    return Change(
        pods=(*_arriving(snapshot, proposal.moves), *locks),
        bound=bound,
        migrations=tuple(_under_way(move) for move in proposal.moves),
    )


def held_nodes(
    goal: Goal, moves: Sequence[Move], snapshot: Snapshot
) -> Mapping[str, tuple[str, ...]]:
    """The nodes where room that moves free must be kept, each with the VMIs that it is for.

    These are the node where the goal's VM is to be bound, if it is for one, every node at which a
    move arrives that waits for others to leave, and every one where a move's pod, were its room
    taken just before it comes, would preempt others. Whatever else the goal's moves bring there is
    let in as well.
    """
    landing = [goal.node] if goal.is_for_vm else []
    arrivals = [m.target for m in moves if m.after or _could_preempt(m, snapshot)]
    nodes = dict.fromkeys([*landing, *arrivals])
    return {
        node: (
            *((goal.subject.uid,) if node in landing else ()),
            *(move.vmi_uid for move in moves if move.target == node),
        )
        for node in nodes
    }


def _could_preempt(move: Move, snapshot: Snapshot) -> bool:
    there = snapshot.pods_by_node.get(move.target, ())
    return any(
        pod.can_preempt and other.priority < pod.priority
        for pod in snapshot.launchers_by_vmi.get(move.vmi_uid, ())[:1]
        for other in there
    )


def lock_pod(name: str, node_name: str, admitted_uids: tuple[str, ...]) -> Pod:
    """A pod that asks for nothing and keeps off every pod but these VMIs' launchers."""
    requirement = Requirement(CREATED_BY, "NotIn", admitted_uids)
    return Pod(
        namespace="",
        name=name,
        uid=name,
        requests={"pods": 1},
        node_name=node_name,
        pod_anti_affinity=(
            PodAffinityTerm(
                topology_key=HOSTNAME,
                selector=LabelSelector((requirement,)),
                namespace_selector=LabelSelector(),
            ),
        ),
    )


def _arriving(snapshot: Snapshot, moves: Sequence[Move]) -> Iterator[Pod]:
    """The target pod of each move; a VM that goes on leaves from the one before."""
    launchers: dict[str, Pod] = {}
    for move in moves:
        vmi = snapshot.vmi_by_key[move.vmi]
        source_pod = launchers.get(vmi.uid) or snapshot.launchers_by_vmi[vmi.uid][0]
        pod = target_pod(vmi, source_pod, snapshot)
        launchers[vmi.uid] = replace(
            pod, node_name=move.target, phase="Running", migration_uid=move.id
        )
        yield launchers[vmi.uid]


def _under_way(move: Move) -> Migration:
    return Migration(
        namespace=move.vmi.namespace,
        name=f"planned for {move.vmi.name}",
        uid=move.id,
        vmi_name=move.vmi.name,
        phase="Pending",
    )
