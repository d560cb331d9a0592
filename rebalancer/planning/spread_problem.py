"""The problem of evening out load over nodes, as arrays."""

from enum import Enum
from functools import cached_property

import msgspec
import numpy as np
from numpy.typing import NDArray

from rebalancer.planning.problem import MoveProblem, Moves
from rebalancer.scheduling.state import BoolArray, IntArray

FloatArray = NDArray[np.float64]

LEAST_GAIN = 1e-9
"""Anything less may be an error of rounding."""


class Measure(Enum):
    """How uneven the load is; the lower the better."""

    SQUARED_DEVIATION = "squared deviation"
    """Sum over nodes and dimensions of (utilisation - mean utilisation) squared."""
    PEAK = "peak"
    """The highest utilisation of any node in any dimension."""


class SpreadProblem(MoveProblem, frozen=True, eq=False, dict=True, kw_only=True):
    """Load is to be spread with at most `max_moves` moves that are worth what they cost.

    Axes besides those of MoveProblem: d dimensions of load. A node's load may be anything that
    its movers carry with them: what they request, or what was measured.
    """

    load: IntArray | FloatArray
    """(n, d) all of it, that of pods which are no movers included."""
    capacity: IntArray | FloatArray
    """(n, d) load at a utilisation of 1; positive."""
    mover_load: IntArray | FloatArray
    """(m, d) the part of its node's load that goes with the mover; not negative."""
    counts: BoolArray
    """(n,) nodes that take part; others are not measured, and nothing moves to or from them."""
    measure: Measure
    min_gain_per_cost_second: float
    """What the measure must fall by for each second of cost (1,000 of its units); not negative."""

    @cached_property
    def kinds(self) -> IntArray:
        """(m,) index of each mover's kind: as in any MoveProblem, and with the same load."""
        kinds = super().kinds
        for column in self.mover_load.T:
            values, codes = np.unique(column, return_inverse=True)
            _, kinds = np.unique(kinds * len(values) + codes, return_inverse=True)
        return kinds.astype(np.int64)

    @cached_property
    def mean(self) -> FloatArray:
        """(d,) utilisation of all nodes that count taken together, which no move changes."""
        load, capacity = self.load[self.counts], self.capacity[self.counts]
        return np.asarray(load.sum(axis=0) / np.maximum(capacity.sum(axis=0), 1), np.float64)

    @property
    def value(self) -> float:
        """The measure as things are; 0 if no node counts."""
        utilisation = (self.load / self.capacity)[self.counts]
        if self.measure is Measure.PEAK:
            return float(utilisation.max(initial=0.0))
        return float(((utilisation - self.mean) ** 2).sum())

    def price(self, moves: Moves) -> float:
        """What the measure must fall by for these moves to be worth their cost."""
        return self.min_gain_per_cost_second * self.cost(moves) / 1000

    def after(self, moves: Moves) -> "SpreadProblem":
        """The problem that is left once the moves have been made."""
        headroom, load = self.headroom.copy(), self.load.astype(np.float64)
        mover_node, mover_release = self.mover_node.copy(), self.mover_release.copy()
        for mover, source, target, release in self.steps(moves):
            headroom[source] += release
            headroom[target] -= self.mover_request[mover]
            load[source] -= self.mover_load[mover]
            load[target] += self.mover_load[mover]
            mover_node[mover] = target
            mover_release[mover] = self.mover_request[mover]
        return msgspec.structs.replace(
            self, headroom=headroom, load=load, mover_node=mover_node, mover_release=mover_release
        )
