"""What it costs to make up for what is still lacking on a node, in whole movers."""

from collections.abc import Sequence

import numpy as np

from rebalancer.planning.problem import INFINITE
from rebalancer.planning.rows import number_rows
from rebalancer.scheduling.state import BoolArray, IntArray

_MAX_STATES = 4_000
"""For each number of movers; where VMs come in a few dozen sizes there are fewer."""


class Remainders:
    """For some movers in a fixed order, what the cheapest set of those from one on costs.

    A state is what is lacking after so many movers, whichever they were. Movers come in few sizes,
    so there are few states, and the table of them is exact; where there are too many, what is
    lacking is rounded down, which only lowers a bound.
    """

    def __init__(
        self,
        deficit: Sequence[int],
        gain: Sequence[Sequence[int]],
        cost: Sequence[int],
        max_moves: int,
    ) -> None:
        """`deficit`: (d,) resources; `gain`: (movers, d); `cost`: (movers,)."""
        gains = np.array(gain)
        size = number_rows(gains)
        _, first = np.unique(size, return_index=True)
        self._size = size.tolist()
        most = min(max_moves, len(cost))
        self._after, is_enough = _states(np.array(deficit), gains[first], most)
        self.cells = self._after.size
        rest = np.where(is_enough, 0.0, INFINITE)
        self._rests = [rest]
        for size, price in zip(reversed(self._size), reversed(cost), strict=True):
            rest = np.minimum(rest, price + rest[self._after[size]])
            self._rests.append(rest)
        self._rests.reverse()

    def bound(self, start: int, taken: tuple[int, ...]) -> float:
        """What those from `start` on cost that must come to those already taken."""
        state = 0
        for i in taken:
            state = self._after[self._size[i], state]
        return float(self._rests[start][state])


def _states(deficit: IntArray, sizes: IntArray, max_moves: int) -> tuple[IntArray, BoolArray]:
    """(sizes, states) the state after one more mover of a size; (states,) where nothing is lacking.

    The last state is that of too many movers.
    """
    step = -(-deficit // int(_MAX_STATES ** (1 / len(deficit))))
    lack = deficit[None]
    layers, after, known = [lack], [], 1
    for _ in range(max_moves):
        left = np.maximum(lack - sizes[:, None], 0).reshape(-1, len(deficit))
        numbers = number_rows(left)
        if numbers.max() >= _MAX_STATES:
            left = left // step * step
            numbers = number_rows(left)
        after.append(known + numbers.reshape(len(sizes), len(lack)))
        known += int(numbers.max()) + 1
        _, first = np.unique(numbers, return_index=True)
        lack = left[first]
        layers.append(lack)
    too_many = np.full((len(sizes), len(lack) + 1), known)
    is_enough = np.append(~np.concatenate(layers).any(axis=1), False)
    return np.concatenate([*after, too_many], axis=1), is_enough
