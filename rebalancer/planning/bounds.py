"""For every node at once: what clearing it costs at least.

Each resource that is short is looked at alone, and movers on the node may leave in part (fractional
cover); the dearest resource counts.
"""

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from rebalancer.planning.problem import INFINITE, FitProblem
from rebalancer.planning.rows import number_rows
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
        if not short.any():
            continue
        cover = FractionalCover(problem, int(resource), movers)
        bounds = np.maximum(bounds, cover.bounds(np.where(short, lack, 0)))
    # One mover at least leaves as a whole. So nodes that one alone would clear tie, and their order
    # decides, not what else is short there.
    return np.where(bounds > 0, np.maximum(bounds, cheapest_by_node(problem, movers)), bounds)


def cheapest_by_node(problem: FitProblem, movers: IntArray) -> FloatArray:
    """(n,) what the cheapest of these movers there costs; infinite where there is none."""
    cheapest = np.full(problem.node_count, INFINITE)
    np.minimum.at(cheapest, problem.mover_node[movers], problem.mover_cost[movers])
    return cheapest


def chain_prices(problem: FitProblem, has_home: BoolArray) -> IntArray:
    """(m,) what making a home for each mover without one costs at least; 0 for the others.

    The price is the fractional cover of what the cheapest node lacks for it. The prices of several
    movers add up even if they go to one node: the cover's cost is convex in what is lacking, and
    as no headroom is counted below 0, two together lack at least what each lacks. That holds for
    one resource only, so each node has one in which it is looked at.
    """
    prices = np.zeros(problem.mover_count, np.int64)
    homeless = np.flatnonzero(~has_home)
    if not len(homeless):
        return prices
    _, example, kind = np.unique(problem.kinds[homeless], return_index=True, return_inverse=True)
    example = homeless[example]
    alike = number_rows(problem.mover_request[example])
    _, first = np.unique(alike, return_index=True)
    at_node = _making_room(problem, problem.mover_request[example[first]])
    may_go = problem.allowed[problem.mover_class[example]]
    cheapest = np.where(may_go, at_node[alike], NEVER).min(axis=1)
    prices[homeless] = np.minimum(cheapest, NEVER)[kind]
    return prices


def _making_room(problem: FitProblem, requests: IntArray) -> FloatArray:
    """(u, n) what making room on each node for each request costs at least in one resource: that
    in which it costs most for all requests together.

    `requests`: (u, r).
    """
    lacks = np.maximum(requests[:, None] - np.maximum(problem.headroom, 0), 0)
    costs = np.zeros((lacks.shape[2], *lacks.shape[:2]))
    nodes = np.tile(np.arange(problem.node_count), len(requests))
    everybody = np.arange(problem.mover_count)
    for resource in np.flatnonzero(lacks.any(axis=(0, 1))):
        cover = FractionalCover(problem, int(resource), everybody)
        bounds = cover.bounds_at(nodes, lacks[:, :, resource].ravel())
        costs[resource] = bounds.reshape(lacks.shape[:2])
    dearest = np.minimum(costs, NEVER).sum(axis=1).argmax(axis=0)
    return np.asarray(np.take_along_axis(costs, dearest[None, None], axis=0)[0], np.float64)


def price_chains(problem: FitProblem, has_home: BoolArray) -> tuple[FitProblem, FloatArray]:
    """The problem with every mover without a home made dearer by what one costs at least; and (n,)
    what landing on each node costs at least.
    """
    prices = chain_prices(problem, has_home)
    priced = replace(problem, mover_cost=problem.mover_cost + prices)
    return priced, clearing_bounds(priced, np.ones(problem.mover_count, np.bool_))


NEVER = 2**40
"""Stands for infinite in whole numbers; more than any plan costs, and small enough to add up."""


class FractionalCover:
    """Movers by node, cheapest per unit of one resource first, to answer for any lack at once.

    Those that give nothing of it are left out.
    """

    def __init__(self, problem: FitProblem, resource: int, movers: IntArray) -> None:
        movers = movers[problem.mover_release[movers, resource] > 0]
        gain, cost = problem.mover_release[movers, resource], problem.mover_cost[movers]
        order = np.lexsort((cost / gain, problem.mover_node[movers]))
        self.gain, self.cost = gain[order], cost[order]
        count = np.bincount(problem.mover_node[movers], minlength=problem.node_count)
        self.ends = np.cumsum(count)
        self.starts = self.ends - count
        self.given = np.concatenate([[0], np.cumsum(self.gain)])
        self.spent = np.concatenate([[0], np.cumsum(self.cost)])

    def bounds(self, lack: IntArray) -> FloatArray:
        """(n,) cost of giving each node what it lacks, the last mover in part; 0 for no lack."""
        return self.bounds_at(np.arange(len(lack)), lack)

    def bounds_at(self, nodes: IntArray, lack: IntArray) -> FloatArray:
        """The same for any nodes, one more than once if need be, and what each then lacks."""
        starts, ends = self.starts[nodes], self.ends[nodes]
        # The mover at which what the node's movers have given reaches what it lacks.
        last = np.searchsorted(self.given, self.given[starts] + lack, side="left") - 1
        bounds = np.zeros(len(lack))
        reached = (lack > 0) & (last < ends)
        at, start = last[reached], starts[reached]
        part = (self.given[start] + lack[reached] - self.given[at]) / self.gain[at]
        bounds[reached] = self.spent[at] - self.spent[start] + self.cost[at] * part
        bounds[(lack > 0) & ~reached] = INFINITE
        return bounds
