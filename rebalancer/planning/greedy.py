"""A plan made without looking back, for when the search for the cheapest has ended with none."""

from collections.abc import Mapping, Sequence

import numpy as np

from rebalancer.planning.bounds import FloatArray
from rebalancer.planning.homes import most_headroom
from rebalancer.planning.placing import PlacingLimitError, place
from rebalancer.planning.problem import FitProblem, Solution
from rebalancer.scheduling.state import BoolArray, IntArray

_MAX_COVERS = 400
"""Nodes for which movers are chosen, those that could be cheapest first; a guess."""

_MAX_PLACINGS = 100
"""Of these, the nodes for whose movers targets are looked for; a guess."""


def greedy_plan(
    problem: FitProblem,
    has_home: BoolArray,
    movers_of: Mapping[int, IntArray],
    bounds: FloatArray,
) -> Solution | None:
    """One whose moves all go into present room; nothing says that it is the cheapest.

    Args:
        movers_of: by node.
        bounds: (n,) what making room there costs at least.
    """
    nodes = np.flatnonzero(
        problem.landing & problem.fits(problem.request, most_headroom(problem, has_home))
    )
    candidates: list[tuple[int, int, list[int]]] = []
    for node in nodes[np.argsort(bounds[nodes], kind="stable")].tolist():
        if len(candidates) == _MAX_COVERS:
            break
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
