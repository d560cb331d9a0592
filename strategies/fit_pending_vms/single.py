"""The proposal for one Pending VM: a verdict, and the cheapest migrations that make room for it."""

from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from opentelemetry import trace

from rebalancer.model.objects import Pod
from rebalancer.model.plan import Goal, Proposal, Reason, Subject, Verdict
from rebalancer.model.snapshot import Snapshot
from rebalancer.model.wording import count_of
from rebalancer.planning.fit import SecondStage, solve_fit, solve_wherever_pods_are
from rebalancer.planning.homes import movers_with_home
from rebalancer.planning.movers import MILLISECONDS, Movers, fit_problem, to_moves
from rebalancer.planning.problem import INFINITE, FitProblem, Outcome
from rebalancer.planning.view import View
from rebalancer.scheduling.feasibility import Feasibility, evaluate
from rebalancer.scheduling.scoring import least_allocated
from rebalancer.scheduling.state import BoolArray
from rebalancer_strategies.fit_pending_vms import certificate
from rebalancer_strategies.fit_pending_vms.relaxation import relaxations
from rebalancer_strategies.fit_pending_vms.settings import FitPendingVMsSettings
from rebalancer_strategies.fit_pending_vms.triage import triage

NAME = "FitPendingVMs"

_tracer = trace.get_tracer("rebalancer")


class Draft(NamedTuple):
    """A proposal, with no more than the headline of what bars the pod."""

    proposal: Proposal
    barred: tuple[Feasibility, View] | None = None
    """Where no plan was found."""

    def in_full(self) -> Proposal:
        """With all that bars the pod, and what would help; that takes longer than the search."""
        if self.barred is None:
            return self.proposal
        pending, view = self.barred
        goal = self.proposal.goal
        has_home = _has_home(fit_problem(pending, view.movers, view.context))
        advice = relaxations(pending, view) if goal.proven else ()
        reasons = (*goal.reasons, *advice, *certificate.node_reasons(pending, view.movers))
        refused = certificate.refusals(pending, view.movers, has_home)
        return Proposal(replace(goal, reasons=reasons), refused=refused)


def propose_one(pod: Pod, view: View, settings: FitPendingVMsSettings) -> Draft:
    """Plans for the pod on the cluster as the view has it."""
    if pod.migration_uid:
        # It holds room already where its migration pins it to a node.
        view = view.without(pod)
    pending = evaluate(pod, view.state)
    subject = _subject(pod, view.snapshot)
    finding = triage(pod, pending, view.snapshot, settings)
    if finding is None:
        needs = view.needs(pod)
        proposal = view.plans.get(needs)
        if proposal is None:
            proposal = view.plans[needs] = _worth_it(_plan(pending, view), settings)
        if proposal.goal.subject != subject:
            return Draft(_for_another(subject, proposal))
        is_barred = proposal.goal.verdict in {Verdict.IMPOSSIBLE, Verdict.UNPROVEN}
        return Draft(proposal, (pending, view) if is_barred else None)
    verdict, reasons = finding
    node = ""
    if verdict is Verdict.FITS:
        # The scheduler decides; this is where it puts the pod most likely.
        scores = np.where(pending.feasible, least_allocated(pod, view.state), -np.inf)
        node = view.state.nodes[int(np.argmax(scores))].name
    return Draft(Proposal(Goal(NAME, subject, verdict, reasons=reasons, node=node)))


def _worth_it(proposal: Proposal, settings: FitPendingVMsSettings) -> Proposal:
    """The proposal itself, or without its moves where they cost more than is allowed."""
    goal, limit = proposal.goal, settings.max_cost_seconds
    if goal.cost is None or limit is None or goal.cost <= limit:
        return proposal
    reason = Reason(
        "too-costly",
        f"{count_of(len(proposal.moves), 'migration')} would make room, at a cost of"
        f" {goal.cost:.1f} s; maxCostSeconds allows {limit:.1f}",
        node=goal.node,
    )
    refused = Goal(NAME, goal.subject, Verdict.NOT_WORTH_IT, reasons=(reason,), bound=goal.bound)
    return Proposal(refused)


def _for_another(subject: Subject, known: Proposal) -> Proposal:
    """The same plan for a VM that needs the same; what bars it is not told twice."""
    goal = replace(known.goal, subject=subject)
    if goal.verdict is not Verdict.PLANNED:
        same = Reason("as-another", f"it needs the same as {known.goal.subject}, with no other end")
        goal = replace(goal, reasons=(goal.reasons[0], same))
    return replace(known, goal=goal)


def _subject(pod: Pod, snapshot: Snapshot) -> Subject:
    vmi = snapshot.vmi_by_uid.get(pod.vmi_uid or "")
    name = vmi.name if vmi else pod.name
    return Subject("VirtualMachineInstance", pod.namespace, name, pod.vmi_uid or "")


def _has_home(problem: FitProblem) -> BoolArray:
    """Which movers could start at once. Axis: mover."""
    return movers_with_home(problem, problem.headroom)


def _plan(pending: Feasibility, view: View) -> Proposal:
    movers, context = view.movers, view.context
    problem = fit_problem(pending, movers, context)
    relaxed = fit_problem(pending, movers, context, ignores_placement=True)
    with _tracer.start_as_current_span("solve") as span:
        outcome = solve_wherever_pods_are(problem, relaxed, view.second_stage)
        span.set_attributes(
            {
                "rebalancer.nodes": problem.node_count,
                "rebalancer.movers": problem.mover_count,
                "rebalancer.is_proven": outcome.is_proven,
            }
        )
    goal = Goal(
        strategy=NAME,
        subject=_subject(pending.pod, movers.state.snapshot),
        verdict=Verdict.UNPROVEN,
        bound=None if outcome.bound == INFINITE else outcome.bound / MILLISECONDS,
    )
    if outcome.solution is not None:
        moves = to_moves(outcome.solution.moves, problem, movers, context)
        return Proposal(_planned(goal, outcome, movers), moves)
    headline = certificate.headline(pending, movers, _has_home(problem))
    if outcome.bound < INFINITE:
        why = outcome.gave_up_because or "rules between pods may hide a plan"
        headline = Reason("not-proven", f"no plan was found, and none is ruled out: {why}")
    elif longer := _longer_plan(problem, view.second_stage):
        headline = longer
    else:
        goal = replace(goal, verdict=Verdict.IMPOSSIBLE, proven=True)
    return Proposal(replace(goal, reasons=(headline,)))


def _longer_plan(problem: FitProblem, second_stage: SecondStage) -> Reason | None:
    """Whether it may be only the policy's limit on moves that is in the way."""
    limit = f"planning.maxMovesPerGoal ({problem.max_moves}) allows"
    # Every VM moved once, and as many detours: longer plans are of no use to anybody.
    free = replace(problem, max_moves=2 * problem.mover_count)
    outcome = solve_fit(free, second_stage)
    if outcome.solution is not None:
        count = len(outcome.solution.moves)
        return Reason("move-limit", f"a plan of {count} migrations was found, more than {limit}")
    if not outcome.is_proven:
        return Reason(
            "not-proven", f"no plan was found; one of more migrations than {limit} may be"
        )
    return None


def _planned(goal: Goal, outcome: Outcome, movers: Movers) -> Goal:
    assert outcome.solution is not None
    solution = outcome.solution
    node = movers.state.nodes[solution.node].name
    count = len(solution.moves)
    what = "one migration makes" if count == 1 else f"{count} migrations make"
    reasons = [Reason("makes-room", f"{what} room", node=node)]
    if not outcome.is_proven:
        why = outcome.gave_up_because or "rules between pods may hide a cheaper plan"
        reasons.append(Reason("not-proven", f"a cheaper plan is not ruled out: {why}"))
    return replace(
        goal,
        verdict=Verdict.PLANNED,
        node=node,
        cost=solution.cost / MILLISECONDS,
        proven=outcome.is_proven,
        reasons=tuple(reasons),
    )
