"""The goal of evening out load."""

from msgspec.structs import replace

from rebalancer.model.plan import Goal, Proposal, Reason, Subject, Verdict
from rebalancer.model.wording import count_of
from rebalancer.planning import checker
from rebalancer.planning.movers import MILLISECONDS, to_moves
from rebalancer.planning.problem import Moves
from rebalancer.planning.spread import even_out
from rebalancer.planning.spread_problem import SpreadProblem
from rebalancer.planning.view import View
from rebalancer_strategies.spread_headroom.balance_problem import balance_problem
from rebalancer_strategies.spread_headroom.goals import NAME, migrations
from rebalancer_strategies.spread_headroom.headroom import Headroom
from rebalancer_strategies.spread_headroom.load import load_of
from rebalancer_strategies.spread_headroom.settings import BalanceSettings, Basis

_WHAT = {Basis.REQUESTS: "requests", Basis.MEASURED_LOAD: "measured load"}


def balance_proposal(settings: BalanceSettings, headroom: Headroom) -> Proposal:
    """At most so many moves that are each worth their cost, and together cost no headroom."""
    view = headroom.view
    goal = Goal(
        NAME,
        Subject("Balance", "", _WHAT[settings.by], "balance"),
        Verdict.MET,
        is_divisible=True,
    )
    found = load_of(settings, view)
    if not found.counts.any():
        return Proposal(replace(goal, verdict=Verdict.UNPROVEN, reasons=found.notes))
    goal = replace(goal, figures={"highestUtilisation": found.highest})
    share = f"{found.highest:.0%} of {found.what}"
    if not found.is_hot:
        calm = f"the busiest node is at {share}; nothing moves below {settings.only_above:.0%}"
        return Proposal(replace(goal, reasons=(Reason("calm", calm), *found.notes)))
    hot = Reason("hot", f"the busiest node is at {share}", node=found.busiest)
    if view.snapshot.migrations_in_flight:
        reasons = (hot, migrations(view), *found.notes)
        return Proposal(replace(goal, verdict=Verdict.WAITING, reasons=reasons))
    problem = balance_problem(found, settings, view)
    goal = replace(goal, reasons=(hot,))
    moves = even_out(problem).moves
    allowed = _without_barred(goal, moves, problem, headroom)
    if allowed:
        proposal = _planned(goal, allowed, problem, view)
        reasons = (*proposal.goal.reasons, *found.notes)
        return replace(proposal, goal=replace(proposal.goal, reasons=reasons))
    why = "no migrations lower it by what they cost"
    if moves:
        why = "migrations that would lower it break a rule, or leave too little headroom"
    return Proposal(replace(goal, reasons=(hot, Reason("no-gain", why), *found.notes)))


def _without_barred(goal: Goal, moves: Moves, problem: SpreadProblem, headroom: Headroom) -> Moves:
    """As many of the first moves as together break no rule, cost no headroom, and are worth it;
    and of those behind them the ones that may come besides.
    """

    def are_allowed(some: Moves) -> bool:
        planned = _planned(goal, some, problem, headroom.view)
        broken = checker.violations(headroom.view.snapshot, [planned.goal], planned.moves)
        return not broken and headroom.is_kept_by(planned.moves)

    def is_better(some: Moves, than: Moves) -> bool:
        return _objective(some, problem) < _objective(than, problem) and are_allowed(some)

    prefixes = (moves[:count] for count in range(len(moves), 0, -1))
    kept = next((prefix for prefix in prefixes if is_better(prefix, ())), ())
    for move in moves[len(kept) + 1 :]:
        if is_better((*kept, move), kept):
            kept = (*kept, move)
    return kept


def _objective(moves: Moves, problem: SpreadProblem) -> float:
    """The measure, and what gain would be too little for the moves."""
    return problem.after(moves).value + problem.price(moves)


def _planned(goal: Goal, moves: Moves, problem: SpreadProblem, view: View) -> Proposal:
    before, after = problem.value, problem.after(moves).value
    planned = to_moves(moves, problem, view.movers, view.context)
    text = (
        f"{count_of(len(planned), 'migration')} would lower the {problem.measure.value} from"
        f" {before:.4f} to {after:.4f}"
    )
    goal = replace(
        goal,
        verdict=Verdict.PLANNED,
        reasons=(*goal.reasons, Reason("evens-out", text)),
        cost=problem.cost(moves) / MILLISECONDS,
        move_ids=tuple(move.id for move in planned),
        figures={**goal.figures, "before": before, "after": after},
    )
    return Proposal(goal, planned)
