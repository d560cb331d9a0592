"""Places movers straight into room that is there now, so that they may move in any order."""

from collections.abc import Sequence

import numpy as np

from rebalancer.planning.problem import FitProblem, Moves

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
    search = _Search(problem, movers, landing)
    if not search.places_from(0):
        return None
    return tuple((int(mover), search.targets[mover]) for mover in movers)


class _Search:
    def __init__(self, problem: FitProblem, movers: Sequence[int], landing: int) -> None:
        self.targets: dict[int, int] = {}
        self._problem = problem
        self._landing = landing
        self._order = sorted(movers, key=lambda i: (*(-problem.mover_request[i]), i))
        self._headroom = problem.headroom.copy()
        self._tries = 0

    def places_from(self, position: int) -> bool:
        """Whether all movers from that one on have places beside those before them.

        Raises: PlacingLimitError.
        """
        if position == len(self._order):
            return True
        mover = self._order[position]
        request = self._problem.mover_request[mover]
        for target in self._homes(mover):
            self._tries += 1
            if self._tries > _MAX_TRIES:
                raise PlacingLimitError
            self._headroom[target] -= request
            self.targets[mover] = target
            if self.places_from(position + 1):
                return True
            self._headroom[target] += request
        return False

    def _homes(self, mover: int) -> list[int]:
        """In the order to try: cheapest charge, then tightest fit, then node order."""
        problem, headroom = self._problem, self._headroom
        homes = problem.homes(mover, headroom)
        homes[self._landing] = False
        nodes = np.flatnonzero(homes)
        left_over = headroom[nodes] - problem.mover_request[mover]
        # Resources are compared by their share of what the largest node has, since units differ.
        scale = np.maximum(problem.headroom.max(axis=0), 1)
        tightness = (left_over / scale).sum(axis=1)
        charge = problem.charge[problem.mover_class[mover], nodes]
        order: list[int] = nodes[np.lexsort((nodes, tightness, charge))].tolist()
        return order
