"""One plan from all strategies: ask each in the policy's order, join, check."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace
from opentelemetry import trace

from rebalancer.model.plan import Goal, Move, Plan, Proposal
from rebalancer.model.snapshot import Snapshot
from rebalancer.planning.checked import checked
from rebalancer.planning.context import PlanningContext
from rebalancer.planning.timetable import estimated_seconds, migration_limits
from rebalancer.planning.view import View
from rebalancer.policy.model import Mode, Section
from rebalancer.strategy import Strategy

_tracer = trace.get_tracer("rebalancer")


class ActiveStrategy(NamedTuple):
    """A strategy as the policy wants it."""

    strategy: Strategy
    mode: Mode
    settings: Section


def make_plan(
    snapshot: Snapshot, strategies: Sequence[ActiveStrategy], context: PlanningContext
) -> Plan:
    """Asks each strategy on what the earlier ones leave; only checked proposals keep their moves.

    Equal snapshots and policies give equal plans, with equal ids.
    """
    proposals: list[Proposal] = []
    view = View.of(snapshot, context)
    for active in strategies:
        if active.mode is Mode.OFF:
            continue
        name = active.strategy.name
        span = f"strategy {name}"
        with _tracer.start_as_current_span(span, attributes={"rebalancer.strategy": name}):
            for proposed in active.strategy.propose(view, active.settings):
                proposal = checked(_signed(proposed, name), view.snapshot)
                proposals.append(proposal)
                view = view.after(proposal)
    return _joined(proposals, snapshot, context)


def _signed(proposal: Proposal, strategy: str) -> Proposal:
    """Its goal says whose it is and which moves are its own, whatever the strategy wrote there."""
    move_ids = tuple(move.id for move in proposal.moves)
    return replace(proposal, goal=replace(proposal.goal, strategy=strategy, move_ids=move_ids))


def _joined(proposals: Sequence[Proposal], snapshot: Snapshot, context: PlanningContext) -> Plan:
    goals = tuple(proposal.goal for proposal in proposals)
    moves = tuple(move for proposal in proposals for move in proposal.moves)
    limits = migration_limits(context.execution.budget, snapshot.migration_configuration)
    refused = {refusal.vmi: refusal for proposal in proposals for refusal in proposal.refused}
    return Plan(
        id=_plan_id(goals, moves),
        goals=goals,
        moves=moves,
        estimated_seconds=estimated_seconds(moves, limits),
        refused=tuple(refused[key] for key in sorted(refused)),
        node_count=len(snapshot.nodes),
        pod_count=len(snapshot.pods),
        vmi_count=len(snapshot.vmis),
        missing=snapshot.missing,
    )


def _plan_id(goals: Sequence[Goal], moves: Sequence[Move]) -> str:
    """A name made of what is planned, so that it is the same wherever the plan was made."""
    content = (
        [(goal.strategy, goal.subject, goal.verdict, goal.node) for goal in goals],
        [(move.id, move.vmi_uid, move.source, move.target, move.after) for move in moves],
    )
    return hashlib.sha256(msgspec.json.encode(content)).hexdigest()[:12]
