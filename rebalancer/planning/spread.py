"""Evens out load: a plan of moves that are each worth their cost.

A round either lowers the measure by more than what its moves are worth or has no moves. So
rounds never undo each other, and there are only so many of them.
"""

from functools import partial
from typing import NamedTuple

from rebalancer.planning.problem import Moves
from rebalancer.planning.spread_descent import descend, is_executable
from rebalancer.planning.spread_peak import lower_peak
from rebalancer.planning.spread_problem import Measure, SpreadProblem

_DEFAULT_REPAIRS = 30


class Evened(NamedTuple):
    """A plan, and the measure before and after it."""

    moves: Moves
    """In an order that works: each finds room once those before it are done; none moves twice."""
    before: float
    after: float


def even_out(problem: SpreadProblem, repairs: int = _DEFAULT_REPAIRS) -> Evened:
    """At most `max_moves` moves that lower the measure by more than they are worth.

    It goes on from its own result until it finds nothing more to do, so that the next run on
    that result does nothing either; unless the number of moves is at its limit, or somebody
    would have to move twice. Equal problems give equal plans. `repairs`: how often a plan
    is taken apart in places to be made better.
    """
    improve = lower_peak if problem.measure is Measure.PEAK else partial(descend, repairs=repairs)
    moves: Moves = ()
    while further := improve(problem.after(moves)):
        together = _merged(problem, moves, further)
        if together is None:
            break
        moves = together
    return Evened(moves, problem.value, problem.after(moves).value)


def _merged(problem: SpreadProblem, moves: Moves, further: Moves) -> Moves | None:
    """One move for each mover that is elsewhere in the end; None if they are too many, or if
    they have no order.
    """
    targets = dict(moves)
    for mover, target in further:
        targets[mover] = target
    later = {mover for mover, _ in further}
    away = [(i, target) for i, target in targets.items() if target != problem.mover_node[i]]
    put_off = [move for move in away if move[0] not in later]
    put_off += [move for move in away if move[0] in later]
    orders = [tuple(away), tuple(put_off)]
    if len(away) > problem.max_moves:
        return None
    return next((order for order in orders if is_executable(problem, order)), None)
