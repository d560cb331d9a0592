"""A plan made without looking back, for when the search for the cheapest has ended with none."""

from collections.abc import Mapping, Sequence

import numpy as np

from rebalancer.planning.placing import PlacingLimitError, place
from rebalancer.planning.problem import FitProblem, Solution
from rebalancer.scheduling.state import BoolArray, IntArray

_MAX_PLACINGS = 100
"""Nodes on which the movers' targets are looked for; a guess."""


def greedy_plan(
    problem: FitProblem, has_home: BoolArray, movers_of: Mapping[int, IntArray]
) -> Solution | None:
    """One whose moves all go into present room; nothing says that it is the cheapest.

    `movers_of`: by node.
    """
    emptied = problem.headroom.copy()
    np.add.at(emptied, problem.mover_node[has_home], problem.mover_release[has_home])
    is_enough = problem.landing & problem.fits(problem.request, emptied)
    candidates = []
    for node in np.flatnonzero(is_enough).tolist():
        movers = movers_of.get(node, np.empty(0, np.int64))
        chosen = _cover(problem, node, movers[has_home[movers]])
        if chosen is not None:
            candidates.append((int(problem.mover_cost[chosen].sum()), node, chosen))
    for _, node, chosen in sorted(candidates)[:_MAX_PLACINGS]:
        try:
            moves = place(problem, chosen, node)
        except PlacingLimitError:
            continue
        if moves is not None:
            return Solution(node, moves, problem.cost(moves))
    return None


def _cover(problem: FitProblem, node: int, movers: IntArray) -> list[int] | None:
    """Movers that make room on the node, each the one that gives most for its cost."""
    lack = np.where(problem.request > 0, problem.request - problem.headroom[node], 0)
    chosen: list[int] = []
    left, rest = lack, movers
    while (left > 0).any():
        given = np.minimum(problem.mover_release[rest], np.maximum(left, 0))
        shares = (given / np.maximum(left, 1)).sum(axis=1)
        if len(chosen) == problem.max_moves or not shares.any():
            return None
        best = int(rest[np.argmax(shares / problem.mover_cost[rest])])
        chosen.append(best)
        rest = rest[rest != best]
        left = left - problem.mover_release[best]
    return _without_useless(problem, lack, chosen)


def _without_useless(problem: FitProblem, lack: IntArray, chosen: Sequence[int]) -> list[int]:
    """Drops, the dearest first, whoever the others make up for."""
    kept = list(chosen)
    for mover in sorted(chosen, key=lambda m: (-int(problem.mover_cost[m]), m)):
        others = [m for m in kept if m != mover]
        if (problem.mover_release[others].sum(axis=0) >= lack).all():
            kept = others
    return kept
