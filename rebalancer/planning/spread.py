"""Evens out load: a plan of moves that are each worth their cost."""

from typing import NamedTuple

from rebalancer.planning.problem import Moves
from rebalancer.planning.spread_descent import descend
from rebalancer.planning.spread_problem import SpreadProblem


class Evened(NamedTuple):
    """A plan, and the measure before and after it."""

    moves: Moves
    """In an order that works: each finds room once those before it are done; none moves twice."""
    before: float
    after: float


def even_out(problem: SpreadProblem, repairs: int = 0) -> Evened:
    """At most `max_moves` moves that lower the measure by more than they are worth."""
    moves = descend(problem, repairs)
    return Evened(moves, problem.value, problem.after(moves).value)
