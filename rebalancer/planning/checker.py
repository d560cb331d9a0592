"""Judges a plan by replaying it; knows nothing of how plans are made and trusts none."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec.structs import replace

from rebalancer.model.objects import Pod
from rebalancer.model.plan import Goal, Move, Verdict
from rebalancer.model.snapshot import Snapshot
from rebalancer.planning.outlook import held_nodes
from rebalancer.planning.replay import Step, arrivals, carried_out, replayed
from rebalancer.planning.worst_timing import fullest
from rebalancer.scheduling.feasibility import evaluate
from rebalancer.scheduling.narrowing import narrowed
from rebalancer.scheduling.own_launchers import off_others
from rebalancer.scheduling.state import ClusterState


def violations(snapshot: Snapshot, goals: Sequence[Goal], moves: Sequence[Move]) -> list[str]:
    """Every rule that carrying out the moves would break, in words; empty for a sound plan.

    Looked at: that each move can start where it says, that the rules of its target let it in
    whatever of the others has happened by then, and its room when those before it are done, that
    no node is overfilled whatever the moves' durations, that a node made free for one goal is not
    used by another's moves, and that each planned goal's VM has its place in the end.
    """
    broken = list(_malformed(snapshot, moves))
    if broken:
        return broken
    snapshot = narrowed(snapshot, *_in_question(snapshot, goals, moves))
    ancestors = _ancestors(moves)
    replay = list(replayed(snapshot, moves))
    broken += _overfilled(snapshot, replay, ancestors)
    broken += _trespassers(snapshot, goals, moves)
    broken += _into_drains(snapshot, moves)
    broken += _barred(snapshot, replay, ancestors)
    broken += _unmet(replay[-1].after if replay else snapshot, goals)
    return broken


def _in_question(
    snapshot: Snapshot, goals: Sequence[Goal], moves: Sequence[Move]
) -> tuple[Sequence[Pod], Collection[str]]:
    """The pods that are to come somewhere, and the nodes where they are to come."""
    launchers = snapshot.launchers_by_vmi
    pods = [each.arriving for each in arrivals(snapshot, moves)]
    pods += [pod for goal in goals for pod in launchers.get(goal.subject.uid, ())]
    return pods, {move.target for move in moves} | {goal.node for goal in goals}


Ancestors = Mapping[str, frozenset[str]]
"""For each move all that must have ended before it starts, at first hand or at second."""


def _malformed(snapshot: Snapshot, moves: Sequence[Move]) -> Iterator[str]:
    last: dict[str, Move] = {}
    seen: set[str] = set()
    for move in moves:
        previous = last.get(move.vmi_uid)
        if previous is None:
            vmi = snapshot.vmi_by_key.get(move.vmi)
            pod = snapshot.pod_of_vmi(vmi) if vmi else None
            if vmi is None or pod is None or pod.node_name != move.source:
                yield f"{move.vmi} does not run on {move.source} with one launcher pod"
            elif vmi.uid != move.vmi_uid:
                yield f"{move.vmi} has uid {vmi.uid}, not {move.vmi_uid}"
        elif previous.target != move.source:
            yield f"{move.vmi} is moved twice, to {previous.target} and then from {move.source}"
        elif previous.id not in move.after:
            yield f"{move.vmi} goes on from {move.source} without waiting until it is there"
        if move.target not in snapshot.node_by_name or move.target == move.source:
            yield f"{move.vmi} cannot go from {move.source} to {move.target}"
        if move.id in seen:
            yield f"two moves have the id {move.id}"
        if unknown := set(move.after) - seen:
            yield f"{move.vmi} waits for {', '.join(sorted(unknown))}, which do not come before it"
        seen.add(move.id)
        last[move.vmi_uid] = move


def _ancestors(moves: Sequence[Move]) -> Ancestors:
    found: dict[str, frozenset[str]] = {}
    for move in moves:
        found[move.id] = frozenset(move.after).union(*(found[each] for each in move.after))
    return found


def _barred(snapshot: Snapshot, replay: Sequence[Step], ancestors: Ancestors) -> Iterator[str]:
    """Room when the moves before it are done; the other rules also when of those that it does not
    wait for none has begun, and when all that may have begun are under way, with both their pods.
    """
    state = ClusterState(snapshot)
    if _only_share_room(replay):
        # For that `_overfilled` looks at every timing, and all else is as it is now.
        for step in replay:
            yield from _refused(step, _reasons(step, state, counts_room=False))
        return
    for step in replay:
        waited = ancestors[step.move.id]
        others = [s for s in replay if s.move.id not in waited and s is not step]
        beside = [s for s in others if step.move.id not in ancestors[s.move.id]]
        state = state.with_pods_of(step.before)
        why = _reasons(step, state, counts_room=True)
        if beside and not why:
            done = carried_out(snapshot, [s.move for s in replay if s.move.id in waited])
            crowded = replace(done, pods=(*done.pods, *(s.placed for s in beside)))
            why = _reasons(step, state.with_pods_of(done), counts_room=False)
            why = why or _reasons(step, state.with_pods_of(crowded), counts_room=False)
        yield from _refused(step, why)


def _refused(step: Step, why: str) -> Iterator[str]:
    if why:
        yield f"{step.move.vmi} would not be let onto {step.move.target}: {why}"


def _only_share_room(replay: Sequence[Step]) -> bool:
    """Whether none minds another, nor its own pod on a node that it comes back to."""
    moved = {step.move.vmi_uid for step in replay}
    return len(moved) == len(replay) and not any(_minds_others(s) for s in replay)


def _minds_others(step: Step) -> bool:
    """Whether where other VMs are may matter to this one's pod, besides for room."""
    pod = step.arriving
    rules = pod.pod_affinity, pod.topology_spread, pod.host_ports, pod.claim_names
    return any((off_others(pod), *rules))


def _reasons(step: Step, state: ClusterState, *, counts_room: bool) -> str:
    """What bars the move's pod from its target, in words; empty if nothing does."""
    feasibility = evaluate(step.arriving, state)
    index = state.index[step.move.target]
    if (feasibility.feasible if counts_room else feasibility.allowed)[index]:
        return ""
    return "; ".join(reason.message for reason in feasibility.reasons(index))


def _overfilled(snapshot: Snapshot, replay: Sequence[Step], ancestors: Ancestors) -> Iterator[str]:
    """For each node the first move and resource with which it could be too full."""
    state = ClusterState(snapshot)
    for target in dict.fromkeys(step.move.target for step in replay):
        arrivals = [step for step in replay if step.move.target == target]
        departures = [step for step in replay if step.move.source == target]
        asked = [
            (arrival, resource)
            for arrival in arrivals
            for resource, amount in arrival.arriving.requests.items()
            if amount
        ]
        for arrival, resource in asked:
            headroom = int(state.headroom(resource)[state.index[target]])
            used, freed = _worst(arrival, resource, arrivals, departures, ancestors)
            if used > headroom + freed:
                yield (
                    f"{target} would be overfilled: {resource} {used} arrives where"
                    f" {headroom + freed} is left"
                )
                break


def _worst(
    step: Step,
    resource: str,
    arrivals: Sequence[Step],
    departures: Sequence[Step],
    ancestors: Ancestors,
) -> tuple[int, int]:
    """What has arrived and what has left when, with that move started, the node is fullest."""
    request = {s.move.id: s.arriving.requests.get(resource, 0) for s in arrivals}
    release = {s.move.id: s.released.get(resource, 0) for s in departures}
    sure = ancestors[step.move.id] | {step.move.id}
    optional = {i: amount for i, amount in request.items() if i not in sure}
    unsure = {i: amount for i, amount in release.items() if i not in sure}
    waits = {i: ancestors[i] & unsure.keys() for i in optional}
    started = fullest(optional, unsure, waits)
    ended = (sure & release.keys()).union(*(waits[i] for i in started))
    used = sum(amount for i, amount in request.items() if i in sure or i in started)
    return used, sum(release[i] for i in ended)


def _trespassers(snapshot: Snapshot, goals: Sequence[Goal], moves: Sequence[Move]) -> Iterator[str]:
    for goal in goals:
        if goal.verdict is not Verdict.PLANNED:
            continue
        own = [move for move in moves if move.id in goal.move_ids]
        for node in held_nodes(goal, own, snapshot):
            for move in moves:
                if move.target == node and move not in own:
                    yield f"{move.vmi} would go to {node}, which is held for {goal.subject}"


def _into_drains(snapshot: Snapshot, moves: Sequence[Move]) -> Iterator[str]:
    """Moves to nodes that bear a sign to be emptied."""
    state = ClusterState(snapshot)
    for move in moves:
        if state.is_draining[state.index[move.target]]:
            yield f"{move.vmi} would go to {move.target}, which is being drained"


def _unmet(snapshot: Snapshot, goals: Sequence[Goal]) -> Iterator[str]:
    for goal in goals:
        if goal.verdict is not Verdict.PLANNED or not goal.is_for_vm:
            continue
        waiting = [
            pod
            for pod in snapshot.launchers_by_vmi.get(goal.subject.uid, ())
            if pod.node_name is None
        ]
        if len(waiting) != 1 or goal.node not in snapshot.node_by_name:
            yield f"{goal.subject} has no single pending pod, or its node {goal.node} is unknown"
            continue
        state = ClusterState(snapshot.without_pod(waiting[0]))
        feasibility = evaluate(waiting[0], state)
        index = state.index[goal.node]
        if not feasibility.feasible[index]:
            why = "; ".join(reason.message for reason in feasibility.reasons(index))
            yield f"{goal.subject} would still not fit on {goal.node}: {why}"
        snapshot = snapshot.with_pod_on(waiting[0], goal.node)
