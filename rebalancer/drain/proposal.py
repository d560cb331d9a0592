"""The proposals that empty nodes."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from rebalancer.drain.evictions import hanging_evictions
from rebalancer.drain.occupants import Occupants, occupants, what_to_do
from rebalancer.drain.reserve import lost_reserve
from rebalancer.model.keys import GOAL_UID
from rebalancer.model.objects import Node
from rebalancer.model.plan import (
    MOVES_UNDER_WAY,
    NODE_KIND,
    Goal,
    Move,
    Proposal,
    Reason,
    Refusal,
    Subject,
    Verdict,
)
from rebalancer.planning.evacuation import Evacuation, evacuate
from rebalancer.planning.movers import MILLISECONDS, to_moves
from rebalancer.planning.no_other_node import no_other_node
from rebalancer.planning.view import View

NAME = "ConsolidateForDrain"


class Drain(NamedTuple):
    """A node to be emptied."""

    node: str
    sign: str
    """Why, in words."""


STUCK = {"cannot-leave", "plan-rejected"}
"""Codes of reasons why VMs stay until a person does something."""


def left_behind(goal: Goal) -> tuple[Reason, ...]:
    """One for each VM that is still on the node once the goal's moves are done, or what is wrong
    with the plan for all of them.
    """
    return tuple(each for each in goal.reasons if each.code in STUCK or each.code == "leaving")


def propose_drains(
    drains: Sequence[Drain], cluster: View, *, keeps_reserve: bool = False
) -> Iterator[Proposal]:
    """One proposal for each of the nodes, in their order; none sends a VM to another of them.

    `keeps_reserve`: a node is not emptied if then the loss of another would leave VMs down that it
    does not now. Otherwise that is only told.
    """
    closed = {drain.node for drain in drains}
    view = cluster
    for drain in drains:
        proposal = propose_drain(drain, closed, view)
        if proposal.moves and (reason := lost_reserve(proposal, view.snapshot)):
            proposal = _without_reserve(proposal, reason, keeps_reserve=keeps_reserve)
        yield proposal
        view = view.after(proposal)


def _without_reserve(proposal: Proposal, reason: Reason, *, keeps_reserve: bool) -> Proposal:
    goal = replace(proposal.goal, reasons=(*proposal.goal.reasons, reason))
    if not keeps_reserve:
        return replace(proposal, goal=goal)
    refused = Goal(NAME, goal.subject, Verdict.NOT_WORTH_IT, goal.reasons, bound=goal.bound)
    return Proposal(refused, refused=proposal.refused)


def propose_drain(drain: Drain, closed: set[str], view: View) -> Proposal:
    """`closed`: nodes that nobody is sent to, besides those that bear a sign themselves."""
    node = view.snapshot.node_by_name[drain.node]
    there = occupants(drain.node, view.movers)
    if not there.movable:
        verdict = _verdict_without_movers(there)
        is_over = verdict is Verdict.IMPOSSIBLE
        goal = Goal(NAME, _subject(node), verdict, _reasons(drain, (), there, view), proven=is_over)
        return Proposal(goal, refused=there.stuck)
    state = view.state
    is_closed = state.is_draining | state.mask(n.name in closed for n in state.nodes)
    index = state.index[node.name]
    found = evacuate(index, view.movers, is_closed, view.context, view.second_stage)
    if found.outcome.solution is None:
        return _nobody_can_leave(drain, found, there, view)
    return _planned(drain, found, there, view)


def _subject(node: Node) -> Subject:
    return Subject(NODE_KIND, "", node.name, node.uid or node.name)


def _verdict_without_movers(there: Occupants) -> Verdict:
    if there.leaving:
        return Verdict.WAITING
    return Verdict.IMPOSSIBLE if there.stuck else Verdict.MET


def _nobody_can_leave(drain: Drain, found: Evacuation, there: Occupants, view: View) -> Proposal:
    there = there.with_stuck(_without_target(drain, (), view))
    if view.snapshot.migrations_in_flight:
        # What they leave behind may be just the room that is missing.
        verdict = Verdict.WAITING
    else:
        verdict = Verdict.IMPOSSIBLE if found.is_most else Verdict.UNPROVEN
    goal = Goal(
        NAME,
        _subject(view.snapshot.node_by_name[drain.node]),
        verdict,
        _reasons(drain, (), there, view),
        proven=verdict is Verdict.IMPOSSIBLE,
    )
    return Proposal(goal, refused=there.stuck)


def _planned(drain: Drain, found: Evacuation, there: Occupants, view: View) -> Proposal:
    solution = found.outcome.solution
    assert solution is not None
    moves = to_moves(solution.moves, found.problem, view.movers, view.context)
    if found.leaving < there.movable:
        there = there.with_stuck(_without_target(drain, moves, view))
    goal = Goal(
        NAME,
        _subject(view.snapshot.node_by_name[drain.node]),
        Verdict.PLANNED,
        _reasons(drain, moves, there, view),
        cost=solution.cost / MILLISECONDS,
        bound=found.outcome.bound / MILLISECONDS,
        proven=found.outcome.is_proven and found.is_most,
        move_ids=tuple(move.id for move in moves),
        is_divisible=True,
    )
    return Proposal(goal, moves, there.stuck)


def _without_target(drain: Drain, moves: Sequence[Move], view: View) -> Iterator[Refusal]:
    """Those that could leave but find no room, or none that the others' migrations leave."""
    moved = {move.vmi_uid for move in moves}
    goal = Goal(NAME, Subject(NODE_KIND, "", drain.node), Verdict.PLANNED)
    state = view.after(Proposal(goal, tuple(moves))).state
    here = np.flatnonzero(view.movers.source == state.index[drain.node]).tolist()
    left = (view.movers.movers[index] for index in here)
    return no_other_node((mover for mover in left if mover.vmi.uid not in moved), state)


def _reasons(
    drain: Drain, moves: Sequence[Move], there: Occupants, view: View
) -> tuple[Reason, ...]:
    snapshot = view.snapshot
    node = snapshot.node_by_name[drain.node]
    leaving = sum(move.source == drain.node for move in moves)
    parts = [
        f"{count} {what}"
        for count, what in (
            (leaving, "to be migrated"),
            (len(moves) - leaving, "moved elsewhere to make room for them"),
            (len(there.leaving), "to leave by themselves or later"),
            (len(there.stuck), "that cannot leave"),
        )
        if count
    ]
    headline = f"{drain.sign}: VMs {', '.join(parts)}" if parts else f"{drain.sign}: no VM is left"
    return (
        Reason("drain", headline, node=node.name),
        *_adopted(node, view),
        *(Reason("cannot-leave", what_to_do(each), object=str(each.vmi)) for each in there.stuck),
        *(
            Reason("leaving", f"{each.vmi}: {each.message}", object=str(each.vmi))
            for each in there.leaving
        ),
        *_open_to_newcomers(node),
        *hanging_evictions(node.name, snapshot),
    )


def _adopted(node: Node, view: View) -> Iterator[Reason]:
    """Migrations that an earlier run has started for the node."""
    uid = _subject(node).uid
    for migration in view.snapshot.migrations_in_flight:
        if migration.labels.get(GOAL_UID) == uid:
            yield Reason(
                MOVES_UNDER_WAY,
                f"migration {migration.namespace}/{migration.name} is under way for it",
                object=f"{migration.namespace}/{migration.name}",
            )


def _open_to_newcomers(node: Node) -> Iterator[Reason]:
    bars = {taint.effect for taint in node.taints} & {"NoSchedule", "NoExecute"}
    if not node.is_unschedulable and not bars:
        yield Reason(
            "not-cordoned",
            f"new pods may still be placed on it; `kubectl cordon {node.name}` keeps them off",
            node=node.name,
        )
