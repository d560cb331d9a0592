"""Movers that leave one node and are in each other's way wherever there is room for each."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from rebalancer.planning.bounds import FractionalCover, cheapest_by_node
from rebalancer.planning.problem import INFINITE, FitProblem

_MAX_MOVERS = 6
"""Of more there are too many subsets."""


class Crowding:
    """Lower bounds for making room for several movers at once."""

    def __init__(self, problem: FitProblem) -> None:
        movers = np.arange(problem.mover_count)
        self._problem = problem
        self._covers = [FractionalCover(problem, r, movers) for r in range(len(problem.request))]
        self._cheapest = cheapest_by_node(problem, movers)

    def bound(self, movers: Sequence[int]) -> float:
        """What others' moves cost at least when all these leave their node, for which there is no
        way to place them all in present room.

        Wherever they go, some of them then meet on a node, or one is alone there, that has too
        little room for them, so that others leave it. That is looked for in all their subsets.
        """
        problem = self._problem
        if len(movers) > _MAX_MOVERS:
            return float(problem.mover_cost.min())
        # Movers of one kind are in each other's place, so that many subsets are alike.
        parts = {
            tuple(sorted(int(problem.kinds[i]) for i in part)): list(part)
            for size in range(1, len(movers) + 1)
            for part in combinations(movers, size)
        }
        requests = np.array([problem.mover_request[part].sum(axis=0) for part in parts.values()])
        classes = [problem.mover_class[part] for part in parts.values()]
        may_go = np.array([problem.allowed[each].all(axis=0) for each in classes])
        may_go[:, problem.mover_node[movers[0]]] = False
        lacks = np.where(requests[:, None] > 0, requests[:, None] - problem.headroom, 0)
        is_short = may_go & (lacks > 0).any(axis=2)
        part, node = np.nonzero(is_short)
        costs = self._cheapest[node]
        for cover, lack in zip(self._covers, lacks[part, node].T, strict=True):
            costs = np.maximum(costs, cover.bounds_at(node, np.maximum(lack, 0)))
        return float(costs.min(initial=INFINITE))
