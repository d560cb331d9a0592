"""One plan from all strategies: ask each in the policy's order, join, check."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace
from opentelemetry import trace

from rebalancer.model.plan import Goal, Move, Plan, Proposal, Reason, Verdict
from rebalancer.model.snapshot import Snapshot
from rebalancer.planning import checker
from rebalancer.planning.context import PlanningContext
from rebalancer.planning.outlook import with_proposal
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
    outlook = snapshot
    for active in strategies:
        if active.mode is Mode.OFF:
            continue
        with _tracer.start_as_current_span(f"strategy {active.strategy.name}") as span:
            for proposed in active.strategy.propose(outlook, active.settings, context):
                proposal = _checked(proposed, outlook)
                proposals.append(proposal)
                outlook = with_proposal(outlook, proposal)
            span.set_attribute("rebalancer.strategy", active.strategy.name)
    return _joined(proposals, snapshot)


def _checked(proposal: Proposal, snapshot: Snapshot) -> Proposal:
    """The proposal itself, or without its moves where carrying them out would break a rule."""
    named = replace(
        proposal,
        goal=replace(proposal.goal, move_ids=tuple(move.id for move in proposal.moves)),
    )
    if proposal.goal.verdict is not Verdict.PLANNED:
        return named
    broken = checker.violations(snapshot, [named.goal], named.moves)
    if not broken:
        return named
    reasons = tuple(Reason("plan-rejected", text) for text in broken)
    goal = replace(
        proposal.goal,
        verdict=Verdict.UNPROVEN,
        reasons=reasons,
        node="",
        cost=None,
        proven=False,
    )
    return Proposal(goal, refused=proposal.refused)


def _joined(proposals: Sequence[Proposal], snapshot: Snapshot) -> Plan:
    goals = tuple(proposal.goal for proposal in proposals)
    moves = tuple(move for proposal in proposals for move in proposal.moves)
    refused = {refusal.vmi: refusal for proposal in proposals for refusal in proposal.refused}
    return Plan(
        id=_plan_id(goals, moves),
        goals=goals,
        moves=moves,
        refused=tuple(refused[key] for key in sorted(refused)),
        node_count=len(snapshot.nodes),
        pod_count=len(snapshot.pods),
        vmi_count=len(snapshot.vmis),
    )


def _plan_id(goals: Sequence[Goal], moves: Sequence[Move]) -> str:
    """A name made of what is planned, so that it is the same wherever the plan was made."""
    content = (
        [(goal.strategy, str(goal.subject), goal.verdict, goal.node) for goal in goals],
        [(move.id, move.source, move.target, move.after) for move in moves],
    )
    return hashlib.sha256(msgspec.json.encode(content)).hexdigest()[:12]
