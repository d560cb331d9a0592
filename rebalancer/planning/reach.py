"""Who can ever move: what movers that leave set free, for others to go to, until nothing changes.

An over-estimate that no order, length or detour of moves gets beyond: whoever can leave is taken to
have left, and nobody to have arrived.
"""

from typing import NamedTuple

import numpy as np

from rebalancer.planning.homes import movers_with_home
from rebalancer.planning.problem import FitProblem
from rebalancer.scheduling.state import BoolArray


class Reach(NamedTuple):
    """Axes: m movers, n nodes."""

    can_move: BoolArray
    """(m,)"""
    can_land: BoolArray
    """(n,) where there could ever be room for the item."""


def reach(problem: FitProblem) -> Reach:
    can_move = np.zeros(problem.mover_count, np.bool_)
    while True:
        most = problem.headroom.copy()
        np.add.at(most, problem.mover_node[can_move], problem.mover_release[can_move])
        found = movers_with_home(problem, most)
        if (found == can_move).all():
            return Reach(can_move, problem.landing & problem.fits(problem.request, most))
        can_move = found
