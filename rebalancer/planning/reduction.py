"""What of a fit problem can take part in a plan that costs less than a given amount.

Whatever is left out is left out because of a lower bound on every plan that it is in, so a search
through the rest is a search through all plans below that cost. The closer the cost is to what
every plan costs at least, the less is left: of thousands of nodes often a few.
"""

from typing import NamedTuple

import numpy as np

from rebalancer.planning.bounds import FloatArray, FractionalCover, clearing_bounds
from rebalancer.planning.problem import INFINITE, FitProblem
from rebalancer.planning.reach import reach
from rebalancer.scheduling.state import BoolArray, IntArray

_ROUNDS = 4
"""Leaving something out raises the bounds of the rest; the gain of more rounds is small."""


class Reduction(NamedTuple):
    """Axes: n nodes, m movers, g kinds of movers."""

    landing: BoolArray
    """(n,) where the item may land."""
    leaves: BoolArray
    """(m,) who may leave."""
    arrives: BoolArray
    """(g, n) which kinds may arrive where."""


def reduce(problem: FitProblem, landing_bounds: FloatArray, cutoff: float) -> Reduction:
    """`landing_bounds`: (n,) no plan that lands the item on the node costs less."""
    first = problem.examples
    landing = landing_bounds < cutoff
    leaves = reach(problem).can_move & (problem.mover_cost < cutoff)
    arrives = problem.allowed[problem.mover_class[first]]
    for _ in range(_ROUNDS):
        before = leaves.sum(), arrives.sum()
        leaves &= _has_target(problem, arrives)
        arrives &= np.isin(np.arange(len(first)), problem.kinds[leaves])[:, None]
        bounds = _Bounds(problem, landing, landing_bounds, leaves)
        leaves &= bounds.of_leaving() < cutoff
        for kind in np.flatnonzero(arrives.any(axis=1)):
            arrives[kind] &= bounds.of_arriving(int(kind), int(first[kind])) < cutoff
        if before == (leaves.sum(), arrives.sum()):
            break
    leaves &= _has_target(problem, arrives)
    return Reduction(landing, leaves, arrives)


def _has_target(problem: FitProblem, arrives: BoolArray) -> BoolArray:
    """(m,) which movers have somewhere to go besides their own node."""
    at_own = arrives[problem.kinds, problem.mover_node]
    return np.asarray(arrives.sum(axis=1)[problem.kinds] > at_own, np.bool_)


class _Bounds:
    """What plans cost at least in which a mover leaves, or one of a kind arrives at a node.

    Two cases: the item lands on that very node, or it lands elsewhere and what is cleared there
    comes on top, since no mover is on two nodes.
    """

    def __init__(
        self,
        problem: FitProblem,
        landing: BoolArray,
        landing_bounds: FloatArray,
        leaves: BoolArray,
    ) -> None:
        self.problem = problem
        self.landing = landing
        self.landing_bounds = landing_bounds
        self.resources = range(len(problem.request))
        self.covers = [FractionalCover(problem, r, np.flatnonzero(leaves)) for r in self.resources]
        clearing = np.where(landing, clearing_bounds(problem, leaves), INFINITE)
        self.elsewhere = _minimum_of_others(clearing)
        kinds = problem.kinds
        self.cheapest = np.full(int(kinds.max()) + 1, int(problem.mover_cost.max()))
        np.minimum.at(self.cheapest, kinds, problem.mover_cost)

    def of_leaving(self) -> FloatArray:
        """(m,)"""
        problem, node = self.problem, self.problem.mover_node
        lack = problem.request - problem.headroom[node] - problem.mover_release
        rest = self._clearing(node, lack, problem.request)
        here = np.maximum(problem.mover_cost + rest, self.landing_bounds[node])
        here[~self.landing[node]] = INFINITE
        return np.minimum(here, problem.mover_cost + self.elsewhere[node])

    def of_arriving(self, kind: int, mover: int) -> FloatArray:
        """(n,)"""
        problem = self.problem
        nodes = np.arange(problem.node_count)
        request = problem.mover_request[mover]
        alone = self._clearing(nodes, request - problem.headroom, request)
        both = request + problem.request
        beside = self._clearing(nodes, both - problem.headroom, both) + self.cheapest[kind]
        beside[~self.landing] = INFINITE
        charge = problem.charge[problem.mover_class[mover]]
        bounds: FloatArray = charge + np.minimum(beside, alone + self.elsewhere)
        return bounds

    def _clearing(self, nodes: IntArray, lack: IntArray, asked: IntArray) -> FloatArray:
        """Cost of giving each of the nodes what it lacks of what is asked for."""
        bounds = np.zeros(len(nodes))
        for r in self.resources:
            if asked[r]:
                short = np.maximum(lack[:, r], 0)
                bounds = np.maximum(bounds, self.covers[r].bounds_at(nodes, short))
        return bounds


def _minimum_of_others(values: FloatArray) -> FloatArray:
    """For each the smallest of the others."""
    if len(values) < 2:
        return np.full(len(values), INFINITE)
    least, second = np.partition(values, 1)[:2]
    others = np.full(len(values), least)
    others[int(np.argmin(values))] = second
    return others
