"""Who can ever move: what movers that leave set free, for others to go to, until nothing changes.

An over-estimate that no order, length or detour of moves gets beyond: whoever can leave is taken to
have left, and nobody to have arrived.
"""

from typing import NamedTuple

import numpy as np

from rebalancer.planning.problem import FitProblem
from rebalancer.scheduling.state import BoolArray


class Reach(NamedTuple):
    """Axes: m movers, n nodes."""

    can_move: BoolArray
    """(m,)"""
    can_land: BoolArray
    """(n,) where there could ever be room for the item."""


def reach(problem: FitProblem) -> Reach:
    _, firsts = np.unique(problem.kinds, return_index=True)
    can_move = np.zeros(problem.mover_count, np.bool_)
    while True:
        most = problem.headroom.copy()
        np.add.at(most, problem.mover_node[can_move], problem.mover_release[can_move])
        homes = np.array(
            [
                problem.fits(problem.mover_request[first], most)
                & problem.allowed[problem.mover_class[first]]
                for first in firsts
            ],
            np.bool_,
        ).reshape(len(firsts), problem.node_count)
        at_own = homes[problem.kinds, problem.mover_node]
        found = homes.sum(axis=1)[problem.kinds] > at_own
        if (found == can_move).all():
            return Reach(can_move, problem.landing & problem.fits(problem.request, most))
        can_move = found
