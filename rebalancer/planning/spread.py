"""Evens out load: a plan of moves that are each worth their cost.

A round either lowers the measure by more than what its moves are worth or has no moves. So
rounds never undo each other, and there are only so many of them.
"""

from functools import partial
from typing import NamedTuple

from rebalancer.planning.problem import Moves
from rebalancer.planning.spread_bound import squared_deviation_bound
from rebalancer.planning.spread_descent import descend
from rebalancer.planning.spread_draft import in_order
from rebalancer.planning.spread_peak import lower_peak, peak_bound
from rebalancer.planning.spread_problem import Measure, SpreadProblem

_DEFAULT_REPAIRS = 10
_DEFAULT_ROUNDS = 100


class Evened(NamedTuple):
    """A plan, and the measure before and after it."""

    moves: Moves
    """In an order that works: each finds room once those before it are done; none moves twice."""
    before: float
    after: float


def even_out(problem: SpreadProblem, repairs: int = _DEFAULT_REPAIRS) -> Evened:
    """At most `max_moves` moves that lower the measure by more than they are worth.

    It goes on from its own result until it finds nothing more to do there, so that the next run
    does nothing either. It only does where the limit of moves was in the way, or somebody would
    have had to move twice in one plan. Equal problems give equal plans. `repairs`: how often a
    plan is taken apart in places to be made better, where squared deviation is the measure.
    """
    improve = lower_peak if problem.measure is Measure.PEAK else partial(descend, repairs=repairs)
    moves: Moves = ()
    while len(moves) < problem.max_moves and (further := improve(problem.after(moves))):
        together = _merged(problem, moves, further)
        if together is None:
            break
        moves = together
    return Evened(moves, problem.value, problem.after(moves).value)


def least_measure(problem: SpreadProblem, plan: Moves, rounds: int = _DEFAULT_ROUNDS) -> float:
    """No plan of at most `max_moves` moves, dear ones included, gets below.

    `plan`: the best that is known. More rounds bring the bound nearer to the least there is,
    where squared deviation is the measure.
    """
    if problem.measure is Measure.PEAK:
        return peak_bound(problem)
    return squared_deviation_bound(problem, plan, rounds)


def _merged(problem: SpreadProblem, moves: Moves, further: Moves) -> Moves | None:
    """One move for each mover that is elsewhere in the end; None if too many, or in no order."""
    targets = {**dict(moves), **dict(further)}
    away = [(i, node) for i, node in targets.items() if node != problem.mover_node[i]]
    return in_order(problem, tuple(away)) if len(away) <= problem.max_moves else None
