"""For every node at once: what clearing it costs at least.

Two relaxations for each resource that is short, the larger of which counts: the movers that are
on the node may leave in part (fractional cover), or whole ones may leave but as many of each size
as one likes (unbounded cover). Both are cheap for thousands of nodes and the second is often
exact, because VMs come in few sizes.
"""

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from rebalancer.planning.homes import split_by
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
        if not short.any():
            continue
        gives = movers[problem.mover_release[movers, resource] > 0]
        by_node = FractionalCover(problem, int(resource), gives).bounds(np.where(short, lack, 0))
        any_number = _unbounded_cover(
            problem.mover_release[gives, resource],
            problem.mover_cost[gives],
            lack[short],
            problem.max_moves,
        )
        bounds[short] = np.maximum(bounds[short], np.maximum(by_node[short], any_number))
    return bounds


def chain_prices(problem: FitProblem, has_home: BoolArray, resource: int) -> IntArray:
    """(m,) what making a home for each mover without one costs at least; 0 for the others.

    The price is the fractional cover of what the cheapest node lacks for it in one resource. The
    prices of several movers add up even if they go to one node: the cover's cost is convex in
    what is lacking, and as no headroom is counted below 0, two together lack at least what each
    lacks. In more than one resource at once that would not hold.
    """
    prices = np.zeros(problem.mover_count, np.int64)
    homeless = np.flatnonzero(~has_home)
    if not len(homeless):
        return prices
    everybody = np.flatnonzero(problem.mover_release[:, resource] > 0)
    cover = FractionalCover(problem, resource, everybody)
    headroom = np.maximum(problem.headroom[:, resource], 0)
    for positions in split_by(problem.kinds[homeless]).values():
        members = homeless[positions]
        lack = problem.mover_request[members[0], resource] - headroom
        bounds = cover.bounds(np.maximum(lack, 0))
        allowed = problem.allowed[problem.mover_class[members[0]]]
        cheapest = bounds[allowed].min(initial=INFINITE)
        prices[members] = NEVER if cheapest == INFINITE else int(cheapest)
    return prices


def price_chains(problem: FitProblem, has_home: BoolArray) -> tuple[FitProblem, FloatArray]:
    """The problem with every mover without a home made dearer by what one costs at least, in the
    resource in which that bounds highest; and (n,) what landing on each node costs at least.
    """
    everybody = np.ones(problem.mover_count, np.bool_)
    candidates: dict[bytes, tuple[FitProblem, FloatArray]] = {}
    for resource in map(int, np.flatnonzero(problem.request > 0)):
        prices = chain_prices(problem, has_home, resource)
        if prices.tobytes() not in candidates:
            priced = replace(problem, mover_cost=problem.mover_cost + prices)
            candidates[prices.tobytes()] = priced, clearing_bounds(priced, everybody)
    return max(candidates.values(), key=lambda candidate: float(candidate[1].min()))


NEVER = 2**40
"""Stands for infinite in whole numbers; more than any plan costs, and small enough to add up."""


class FractionalCover:
    """Movers by node, cheapest per unit of one resource first, to answer for any lack at once."""

    def __init__(self, problem: FitProblem, resource: int, movers: IntArray) -> None:
        gain, cost = problem.mover_release[movers, resource], problem.mover_cost[movers]
        order = np.lexsort((cost / gain, problem.mover_node[movers]))
        nodes = problem.mover_node[movers][order]
        self.gain, self.cost = gain[order], cost[order]
        self.starts = np.searchsorted(nodes, np.arange(problem.node_count))
        self.ends = np.searchsorted(nodes, np.arange(problem.node_count), side="right")
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


_MAX_SUMS = 512
"""Sums of sizes that are told apart; a guess, more than clusters with a few dozen sizes have."""


def _unbounded_cover(gain: IntArray, cost: IntArray, lack: IntArray, max_moves: int) -> FloatArray:
    """For each lack, no multiset of at most so many movers that gives it costs less."""
    if not len(gain) or not len(lack):
        return np.full(len(lack), INFINITE)
    enough = int(lack.max())
    sizes, prices = _cheapest_sums(gain, cost, enough)
    given, spent = np.zeros(1, np.int64), np.zeros(1, np.int64)
    for _ in range(max_moves):
        before = given, spent
        given, spent = _cheapest_sums(
            np.concatenate([given, (given[:, None] + sizes).ravel()]),
            np.concatenate([spent, (spent[:, None] + prices).ravel()]),
            enough,
        )
        # Having enough is no end: more of the smaller ones may do it for less.
        if np.array_equal(before[0], given) and np.array_equal(before[1], spent):
            break
    index = np.searchsorted(given, lack, side="left")
    return np.where(index < len(given), spent[np.minimum(index, len(spent) - 1)], INFINITE)


def _cheapest_sums(given: IntArray, spent: IntArray, enough: int) -> tuple[IntArray, IntArray]:
    """What is undominated where more than `enough` is worth no more than that.

    Where that is too much, what is given is rounded up, which only lowers a bound.
    """
    given, spent = _undominated(np.minimum(given, enough), spent)
    if len(given) <= _MAX_SUMS:
        return given, spent
    step = -(-enough // _MAX_SUMS)
    return _undominated(np.minimum(-(-given // step) * step, enough), spent)


def _undominated(given: IntArray, spent: IntArray) -> tuple[IntArray, IntArray]:
    """Those for which no other gives as much for less; both ascending."""
    order = np.lexsort((-given, spent))
    best_before = np.concatenate([[-1], np.maximum.accumulate(given[order])[:-1]])
    kept = order[given[order] > best_before]
    return given[kept], spent[kept]
