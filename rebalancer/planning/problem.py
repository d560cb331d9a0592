"""Movers and nodes as arrays, without any word of Kubernetes, and the fit problem among them.

Movers, each on a node, may be moved elsewhere. Axes: n nodes, m movers, k classes of movers that
may go to the same nodes at the same charge, r resources. Costs are integers (milliseconds).
"""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct

from rebalancer.planning.rows import number_rows
from rebalancer.scheduling.state import BoolArray, IntArray


class MoveProblem(Struct, frozen=True, eq=False, dict=True, kw_only=True):
    """What all problems of moving VMs have in common."""

    headroom: IntArray
    """(n, r); negative where a node is over-committed."""
    mover_node: IntArray
    """(m,) index of the node that the mover is on."""
    mover_request: IntArray
    """(m, r) what it needs where it goes."""
    mover_release: IntArray
    """(m, r) what its node gets back when it leaves; not more than it needs elsewhere."""
    mover_cost: IntArray
    """(m,) cost of moving it anywhere; positive."""
    mover_class: IntArray
    """(m,) index of its class."""
    allowed: BoolArray
    """(k, n) where movers of the class may go as far as rules go."""
    charge: IntArray
    """(k, n) what a mover of the class costs besides on that node; not negative."""
    max_moves: int

    def fields(self) -> dict[str, Any]:
        """What a problem that adds something to this one is made with, too."""
        return {name: getattr(self, name) for name in MoveProblem.__struct_fields__}

    @property
    def node_count(self) -> int:
        return len(self.headroom)

    @property
    def mover_count(self) -> int:
        return len(self.mover_node)

    @cached_property
    def kinds(self) -> IntArray:
        """(m,) index of each mover's kind: movers of one kind have the same homes, and leave the
        same room behind.
        """
        columns = self.mover_class, self.mover_request, self.mover_release
        return number_rows(np.column_stack(columns))

    @cached_property
    def examples(self) -> IntArray:
        """(g,) index of the first mover of each of the g kinds."""
        return np.unique(self.kinds, return_index=True)[1]

    def fits(self, request: IntArray, headroom: IntArray) -> BoolArray:
        """Which rows of the headroom take the request; what is not asked for is not looked at."""
        return np.asarray(((headroom >= request) | (request == 0)).all(axis=-1), np.bool_)

    def homes(self, mover: int, headroom: IntArray) -> BoolArray:
        """(n,) nodes other than its own that take the mover where there is that headroom."""
        fits = self.fits(self.mover_request[mover], headroom)
        fits &= self.allowed[self.mover_class[mover]]
        fits[self.mover_node[mover]] = False
        return fits

    def steps(self, moves: "Moves") -> list["Step"]:
        """The moves with where each starts from; a mover that goes on leaves what it asked for."""
        steps, at = [], dict[int, int]()
        for mover, target in moves:
            source = at.get(mover, int(self.mover_node[mover]))
            release = self.mover_request[mover] if mover in at else self.mover_release[mover]
            steps.append(Step(mover, source, target, release))
            at[mover] = target
        return steps

    def cost(self, moves: "Moves") -> int:
        return sum(
            int(self.mover_cost[mover] + self.charge[self.mover_class[mover], target])
            for mover, target in moves
        )


class FitProblem(MoveProblem, frozen=True, eq=False, dict=True, kw_only=True):
    """One item of size `request` is to land on one of the nodes in `landing`."""

    request: IntArray
    """(r,)"""
    landing: BoolArray
    """(n,) where the item may land as far as rules go."""


Moves = tuple[tuple[int, int], ...]
"""(mover, target node) pairs; a mover that makes a detour has one pair for each of its moves."""


class Step(NamedTuple):
    """One of several moves made one after the other."""

    mover: int
    source: int
    target: int
    release: IntArray
    """(r,) what the source gets back."""


INFINITE = float("inf")


class Solution(NamedTuple):
    """A plan for a fit problem: where the item lands, and the moves in an order that works."""

    node: int
    moves: Moves
    cost: int


class Outcome(NamedTuple):
    """What is known about a fit problem in the end.

    No executable plan costs less than `bound`; without a solution, an infinite bound says that
    there is none at all.
    """

    solution: Solution | None
    bound: float
    gave_up_because: str = ""
    """Why the bound does not meet the solution, in words for a user."""

    @property
    def is_proven(self) -> bool:
        if self.solution is None:
            return self.bound == INFINITE
        return self.bound >= self.solution.cost

    def normalised(self) -> "Outcome":
        """With a bound that is whole, since costs are, and not above the solution's cost."""
        limit = self.solution.cost if self.solution else INFINITE
        bound = min(self.bound, limit)
        # The solver's floating point may leave a whole bound a hair above or below itself.
        return self._replace(bound=bound if bound == INFINITE else float(np.ceil(bound - 1e-6)))
