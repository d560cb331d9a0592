"""Lowers the highest utilisation: from each node above a threshold the fewest movers leave,
straight into room below it that is there now.
"""

import numpy as np

from rebalancer.planning.homes import split_by
from rebalancer.planning.problem import Moves
from rebalancer.planning.spread_problem import LEAST_GAIN, FloatArray, SpreadProblem
from rebalancer.scheduling.state import IntArray

_LEVELS = 16
_HALVINGS = 12
"""Of the distance between two levels, once it is known between which the lowest plan lies."""
_TRIES = 10
"""For each threshold, to find movers that all find a place."""
_BOUND_HALVINGS = 40
_NOBODY = np.empty(0, np.int64)
_ROUNDING = 1e-9
"""Share of a node's capacity that a threshold is not exact to."""


def lower_peak(problem: SpreadProblem) -> Moves:
    """The plan that is best in peak plus price among those for many thresholds; maybe none."""
    search = _Search(problem)
    levels = np.linspace(problem.value, problem.mean.max(initial=0.0), _LEVELS + 1).tolist()
    reached = max((i for i in range(1, _LEVELS + 1) if search.attempt(levels[i])), default=0)
    high, low = levels[reached], levels[min(reached + 1, _LEVELS)]
    for _ in range(_HALVINGS):
        middle = (high + low) / 2
        high, low = (middle, low) if search.attempt(middle) else (high, middle)
    return search.best


def peak_bound(problem: SpreadProblem) -> float:
    """No plan of at most `max_moves` moves has a lower peak: in one dimension after the other,
    from each node above it the largest movers leave, and more would have to than may.
    """
    low, high = float(problem.mean.max(initial=0.0)), problem.value
    largest = [_largest_first(problem, d) for d in range(problem.load.shape[1])]
    if _fewest_leaving(problem, largest, low) <= problem.max_moves:
        return min(low, high)
    for _ in range(_BOUND_HALVINGS):
        middle = (low + high) / 2
        if _fewest_leaving(problem, largest, middle) <= problem.max_moves:
            high = middle
        else:
            low = middle
    return low


def _largest_first(problem: SpreadProblem, dimension: int) -> list[FloatArray]:
    """For each node that counts, how much is gone when so many have left."""
    movers, load = split_by(problem.mover_node), problem.mover_load[:, dimension]
    return [
        np.cumsum(np.sort(load[movers.get(int(node), _NOBODY)])[::-1])
        for node in np.flatnonzero(problem.counts)
    ]


def _fewest_leaving(
    problem: SpreadProblem, largest: list[list[FloatArray]], threshold: float
) -> float:
    """How many must leave at least so that no node is above; infinite if all are not enough."""
    excess = (problem.load - (threshold + _ROUNDING) * problem.capacity)[problem.counts]
    fewest = np.zeros(len(excess))
    for d, given in enumerate(largest):
        for node in np.flatnonzero(excess[:, d] > 0):
            enough = int(np.searchsorted(given[node], excess[node, d]))
            leaving = enough + 1 if enough < len(given[node]) else np.inf
            fewest[node] = max(fewest[node], leaving)
    return float(fewest.sum())


class _Search:
    """The best plan so far, and what all thresholds need."""

    def __init__(self, problem: SpreadProblem) -> None:
        self.problem = problem
        self.best: Moves = ()
        self._objective = problem.value - LEAST_GAIN
        self._movers = split_by(problem.mover_node)
        self._share = (problem.mover_load / problem.capacity.mean(axis=0)).max(axis=1)

    def attempt(self, threshold: float) -> bool:
        """Whether there is a plan for this threshold; the better one is kept."""
        moves = self._plan(threshold)
        if moves is None:
            return False
        objective = self.problem.after(moves).value + self.problem.price(moves)
        if objective < self._objective:
            self.best, self._objective = moves, objective
        return True

    def _plan(self, threshold: float) -> Moves | None:
        """Movers that found no place come first the next time; if they find none then either,
        they stay, and others leave in their stead.
        """
        first: set[int] = set()
        staying: set[int] = set()
        for _ in range(_TRIES):
            # Negative where a node has more than it should.
            room = self.problem.capacity * (threshold + _ROUNDING) - self.problem.load
            leaving = self._leaving(room, staying)
            if leaving is None:
                return None
            leaving.sort(key=lambda i: (i not in first, -self._share[i], i))
            moves = self._placed(leaving, room)
            homeless = set(leaving) - {mover for mover, _ in moves}
            if not homeless:
                return moves
            staying |= homeless & first
            first |= homeless
        return None

    def _leaving(self, room: FloatArray, staying: set[int]) -> list[int] | None:
        """Who leaves so that no node has too much; adds that to the room. None if too many."""
        leaving: list[int] = []
        for node in np.flatnonzero((room < 0).any(axis=1) & self.problem.counts):
            movers = self._movers.get(int(node), _NOBODY)
            movers = movers[[mover not in staying for mover in movers.tolist()]]
            chosen = self._shed(movers, -room[node])
            if chosen is None or len(leaving) + len(chosen) > self.problem.max_moves:
                return None
            leaving += chosen
            room[node] += self.problem.mover_load[chosen].sum(axis=0)
        return leaving

    def _placed(self, movers: list[int], room: FloatArray) -> Moves:
        """Each in turn to where it fits most tightly; those that find no place are left out."""
        problem, headroom = self.problem, self.problem.headroom.copy()
        moves = []
        for mover in movers:
            load, mover_class = problem.mover_load[mover], problem.mover_class[mover]
            takes = problem.homes(mover, headroom) & problem.counts & (room >= load).all(axis=1)
            nodes = np.flatnonzero(takes)
            if not len(nodes):
                continue
            left_over = ((room[nodes] - load) / problem.capacity[nodes]).sum(axis=1)
            target = int(nodes[np.lexsort((left_over, problem.charge[mover_class, nodes]))[0]])
            headroom[target] -= problem.mover_request[mover]
            room[target] -= load
            moves.append((mover, target))
        return tuple(moves)

    def _shed(self, movers: IntArray, excess: FloatArray) -> list[int] | None:
        """Largest first; the last is the smallest that is enough. None if all are not enough."""
        chosen: list[int] = []
        while (excess > 0).any():
            load = self.problem.mover_load[movers]
            short = excess > 0
            useful = np.minimum(load[:, short] / excess[short], 1).sum(axis=1)
            if not useful.any():
                return None
            is_best = useful == useful.max()
            which = int(np.argmin(np.where(is_best, self._share[movers], np.inf)))
            chosen.append(int(movers[which]))
            excess = excess - load[which]
            movers = np.delete(movers, which)
        return chosen
