"""For every node at once: what clearing it costs at least.

Two relaxations for each resource that is short, the larger of which counts: the movers that are
on the node may leave in part (fractional cover), or whole ones may leave but as many of each size
as one likes (unbounded cover). Both are cheap for thousands of nodes and the second is often
exact, because VMs come in few sizes.
"""

import numpy as np
from numpy.typing import NDArray

from rebalancer.planning.problem import INFINITE, FitProblem
from rebalancer.scheduling.state import BoolArray, IntArray

FloatArray = NDArray[np.float64]


def clearing_bounds(problem: FitProblem, may_leave: BoolArray) -> FloatArray:
    """(n,) no set of those movers whose leaving makes room on the node costs less.

    Infinite where even all of them give too little, and where the item may not land.
    """
    bounds = np.where(problem.landing, 0.0, INFINITE)
    movers = np.flatnonzero(may_leave)
    for resource in np.flatnonzero(problem.request > 0):
        lack = problem.request[resource] - problem.headroom[:, resource]
        short = problem.landing & (lack > 0)
        gives = movers[problem.mover_release[movers, resource] > 0]
        gain = problem.mover_release[gives, resource]
        cost = problem.mover_cost[gives]
        node = problem.mover_node[gives]
        by_node = _fractional_cover(node, gain, cost, np.where(short, lack, 0))
        any_number = _unbounded_cover(gain, cost, lack[short], problem.max_moves)
        bounds[short] = np.maximum(bounds[short], np.maximum(by_node[short], any_number))
    return bounds


def _fractional_cover(node: IntArray, gain: IntArray, cost: IntArray, lack: IntArray) -> FloatArray:
    """(n,) cheapest per unit first on each node, the last mover in part; 0 where nothing lacks."""
    order = np.lexsort((cost / gain, node))
    gains, costs, nodes = gain[order], cost[order], node[order]
    starts = np.searchsorted(nodes, np.arange(len(lack)))
    ends = np.searchsorted(nodes, np.arange(len(lack)), side="right")
    given = np.concatenate([[0], np.cumsum(gains)])
    spent = np.concatenate([[0], np.cumsum(costs)])
    # The mover at which what the node's movers have given reaches what it lacks.
    last = np.searchsorted(given, given[starts] + lack, side="left") - 1
    bounds = np.zeros(len(lack))
    reached = (lack > 0) & (last < ends)
    at = last[reached]
    part = (given[starts][reached] + lack[reached] - given[at]) / gains[at]
    bounds[reached] = spent[at] - spent[starts][reached] + costs[at] * part
    bounds[(lack > 0) & ~reached] = INFINITE
    return bounds


def _unbounded_cover(gain: IntArray, cost: IntArray, lack: IntArray, max_moves: int) -> FloatArray:
    """For each lack the cheapest multiset of at most so many movers that gives it."""
    if not len(gain) or not len(lack):
        return np.full(len(lack), INFINITE)
    sizes, prices = _undominated(gain, cost)
    given, spent = np.zeros(1, np.int64), np.zeros(1, np.int64)
    for _ in range(max_moves):
        if given[-1] >= lack.max():
            break
        given, spent = _undominated(
            np.concatenate([given, (given[:, None] + sizes).ravel()]),
            np.concatenate([spent, (spent[:, None] + prices).ravel()]),
        )
    index = np.searchsorted(given, lack, side="left")
    return np.where(index < len(given), spent[np.minimum(index, len(spent) - 1)], INFINITE)


def _undominated(given: IntArray, spent: IntArray) -> tuple[IntArray, IntArray]:
    """Those for which no other gives as much for less; both ascending."""
    order = np.lexsort((-given, spent))
    best_before = np.concatenate([[-1], np.maximum.accumulate(given[order])[:-1]])
    kept = order[given[order] > best_before]
    return given[kept], spent[kept]
