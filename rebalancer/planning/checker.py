"""Judges a plan by replaying it; knows nothing of how plans are made and trusts none."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from rebalancer.model.objects import Amounts, Pod
from rebalancer.model.plan import Goal, Move, Verdict
from rebalancer.model.snapshot import Snapshot
from rebalancer.planning.outlook import held_nodes
from rebalancer.scheduling.feasibility import evaluate
from rebalancer.scheduling.state import ClusterState
from rebalancer.scheduling.target_pod import released_requests, target_pod

_MAX_TIMINGS = 4096
"""Sets of ended moves that are looked at; twelve independent moves have that many."""


def violations(snapshot: Snapshot, goals: Sequence[Goal], moves: Sequence[Move]) -> list[str]:
    """Every rule that carrying out the moves would break, in words; empty for a sound plan.

    Looked at: that each move can start where it says, that the rules and the room of its target
    let it in when the moves before it are done, that no node is overfilled whatever the moves'
    durations, that a node made free for one goal is not used by another's moves, and that each
    planned goal's VM has its place in the end.
    """
    broken = list(_malformed(snapshot, moves))
    if broken:
        return broken
    broken += _overfilled(snapshot, moves)
    broken += _trespassers(goals, moves)
    after = snapshot
    for move in moves:
        problem = _barred(after, move)
        if problem:
            broken.append(problem)
        after = _moved(after, move)
    broken += _unmet(after, goals)
    return broken


def _malformed(snapshot: Snapshot, moves: Sequence[Move]) -> Iterator[str]:
    seen: set[str] = set()
    for move in moves:
        vmi = snapshot.vmi_by_key.get(move.vmi)
        pod = snapshot.pod_of_vmi(vmi) if vmi else None
        if pod is None or pod.node_name != move.source:
            yield f"{move.vmi} does not run on {move.source} with one launcher pod"
        if move.target not in snapshot.node_by_name or move.target == move.source:
            yield f"{move.vmi} cannot go from {move.source} to {move.target}"
        if move.id in seen:
            yield f"{move.vmi} is moved twice"
        if unknown := set(move.after) - seen:
            yield f"{move.vmi} waits for {', '.join(sorted(unknown))}, which do not come before it"
        seen.add(move.id)


def _arriving(snapshot: Snapshot, move: Move) -> Pod:
    vmi = snapshot.vmi_by_key[move.vmi]
    source_pod = snapshot.launchers_by_vmi[vmi.uid][0]
    return target_pod(vmi, source_pod, snapshot)


def _leaving(snapshot: Snapshot, move: Move) -> Amounts:
    vmi = snapshot.vmi_by_key[move.vmi]
    return released_requests(snapshot.launchers_by_vmi[vmi.uid][0], snapshot)


def _barred(snapshot: Snapshot, move: Move) -> str | None:
    state = ClusterState(snapshot)
    feasibility = evaluate(_arriving(snapshot, move), state)
    index = state.index[move.target]
    if feasibility.feasible[index]:
        return None
    why = "; ".join(reason.message for reason in feasibility.reasons(index))
    return f"{move.vmi} would not be let onto {move.target}: {why}"


def _moved(snapshot: Snapshot, move: Move) -> Snapshot:
    """Pods that bring hot-plugged volumes go with the VM; the arriving pod counts for them."""
    arriving = replace(_arriving(snapshot, move), node_name=move.target, phase="Running")
    vmi = snapshot.vmi_by_key[move.vmi]
    left = snapshot.launchers_by_vmi[vmi.uid][0].uid
    return replace(
        snapshot,
        pods=(*(pod for pod in snapshot.pods if left not in {pod.uid, pod.attached_to}), arriving),
        vmis=tuple(
            replace(v, node_name=move.target) if v.uid == vmi.uid else v for v in snapshot.vmis
        ),
    )


def _overfilled(snapshot: Snapshot, moves: Sequence[Move]) -> Iterator[str]:
    state = ClusterState(snapshot)
    requests = {move.id: _arriving(snapshot, move).requests for move in moves}
    releases = {move.id: _leaving(snapshot, move) for move in moves}
    found: set[str] = set()
    for ended in _timings(moves):
        arrived = [m for m in moves if ended.issuperset(m.after)]
        left = [m for m in moves if m.id in ended]
        for move in arrived:
            index = state.index[move.target]
            for resource, amount in requests[move.id].items():
                used = _sum(requests, [m for m in arrived if m.target == move.target], resource)
                freed = _sum(releases, [m for m in left if m.source == move.target], resource)
                room = int(state.headroom(resource)[index]) + freed
                if amount and used > room and move.target not in found:
                    found.add(move.target)
                    yield (
                        f"{move.target} would be overfilled: {resource} {used} arrives where"
                        f" {room} is left"
                    )


def _sum(requests: Mapping[str, Mapping[str, int]], moves: Sequence[Move], resource: str) -> int:
    return sum(requests[move.id].get(resource, 0) for move in moves)


def _timings(moves: Sequence[Move]) -> Iterator[frozenset[str]]:
    """Sets of moves that can have ended at the same time, each with all that they wait for.

    At each, every other move that may start is taken as started: the fullest that can be.
    """
    seen = {frozenset[str]()}
    queue = [frozenset[str]()]
    while queue and len(seen) <= _MAX_TIMINGS:
        ended = queue.pop(0)
        yield ended
        for move in moves:
            if move.id not in ended and ended.issuperset(move.after):
                later = ended | {move.id}
                if later not in seen:
                    seen.add(later)
                    queue.append(later)


def _trespassers(goals: Sequence[Goal], moves: Sequence[Move]) -> Iterator[str]:
    for goal in goals:
        if goal.verdict is not Verdict.PLANNED:
            continue
        own = [move for move in moves if move.id in goal.move_ids]
        for node in held_nodes(goal, own):
            for move in moves:
                if move.target == node and move not in own:
                    yield f"{move.vmi} would go to {node}, which is held for {goal.subject}"


def _unmet(snapshot: Snapshot, goals: Sequence[Goal]) -> Iterator[str]:
    for goal in goals:
        if goal.verdict is not Verdict.PLANNED:
            continue
        waiting = [
            pod
            for pod in snapshot.launchers_by_vmi.get(goal.subject.uid, ())
            if pod.node_name is None
        ]
        state = ClusterState(snapshot)
        if len(waiting) != 1 or goal.node not in state.index:
            yield f"{goal.subject} has no single pending pod, or its node {goal.node} is unknown"
            continue
        feasibility = evaluate(waiting[0], state)
        index = state.index[goal.node]
        if not feasibility.feasible[index]:
            why = "; ".join(reason.message for reason in feasibility.reasons(index))
            yield f"{goal.subject} would still not fit on {goal.node}: {why}"
        snapshot = snapshot.with_pod_on(waiting[0], goal.node)
