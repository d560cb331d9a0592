"""Places movers straight into room that is there now, so that they may move in any order."""

from collections.abc import Sequence

import numpy as np

from rebalancer.planning.problem import FitProblem, Moves
from rebalancer.scheduling.state import IntArray

_MAX_TRIES = 20_000
"""A backtracking search that has not ended by then is given up; a guess, rarely met since a set
has few movers and most have many homes."""


class PlacingLimitError(Exception):
    """The search was given up: nothing is known about this set."""


def place(problem: FitProblem, movers: Sequence[int], landing: int) -> Moves | None:
    """Targets for all these movers at once, none of them the landing node; None if impossible.

    Largest mover first; exact by backtracking.

    Raises: PlacingLimitError.
    """
    order = sorted(movers, key=lambda i: (*(-problem.mover_request[i]), i))
    headroom = problem.headroom.copy()
    tries = 0
    targets: dict[int, int] = {}

    def search(position: int) -> bool:
        nonlocal tries
        if position == len(order):
            return True
        mover = order[position]
        for target in _targets(problem, mover, headroom, landing):
            tries += 1
            if tries > _MAX_TRIES:
                raise PlacingLimitError
            headroom[target] -= problem.mover_request[mover]
            targets[mover] = target
            if search(position + 1):
                return True
            headroom[target] += problem.mover_request[mover]
        return False

    if not search(0):
        return None
    return tuple((int(mover), targets[mover]) for mover in movers)


def _targets(problem: FitProblem, mover: int, headroom: IntArray, landing: int) -> tuple[int, ...]:
    """Homes in the order to try: cheapest charge, then tightest fit, then node order."""
    request = problem.mover_request[mover]
    k = problem.mover_class[mover]
    homes = problem.homes(mover, headroom)
    homes[landing] = False
    nodes = np.flatnonzero(homes)
    left_over = headroom[nodes] - request
    # Resources are compared by their share of what the largest node has, since units differ.
    scale = np.maximum(problem.headroom.max(axis=0), 1)
    tightness = (left_over / scale).sum(axis=1)
    order = nodes[np.lexsort((nodes, tightness, problem.charge[k, nodes]))]
    return tuple(map(int, order))
