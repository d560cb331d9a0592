"""Evens out load by steepest descent of the squared deviation plus what the moves are worth.

With e the deviation of a node's utilisation from the mean, and a the load of a mover over the
capacity of that node, an arrival adds 2*e*a + a*a and a departure -2*e*a + a*a, summed over the
dimensions. Neither knows of the other, so the best target of a kind of movers is found once for
all of them, and stays known until a better one turns up or it has taken somebody itself.
"""

import copy
from collections.abc import Iterable

import numpy as np

from rebalancer.planning.problem import Moves
from rebalancer.planning.spread_problem import LEAST_GAIN, FloatArray, SpreadProblem
from rebalancer.scheduling.state import BoolArray, IntArray

_CELLS_AT_ONCE = 1 << 20
"""Of the table of kinds and nodes, so that memory stays within some tens of MiB."""
_ROWS_AT_ONCE = 64
_UNDONE_AT_ONCE = 12


class Descent:
    """A plan in the making: which movers go where, in an order in which each finds room.

    The objective is the squared deviation plus `min_gain_per_cost_second` times the cost.
    """

    def __init__(self, problem: SpreadProblem) -> None:
        self.problem = problem
        _, first, self._kind = np.unique(problem.kinds, return_index=True, return_inverse=True)
        self._request = problem.mover_request[first]
        self._load = problem.mover_load[first].astype(np.float64)
        self._class = problem.mover_class[first]
        self._per_cost = problem.min_gain_per_cost_second / 1000
        with np.errstate(divide="ignore"):
            self._share = np.where(problem.counts[:, None], 1 / problem.capacity, 0.0)
        self._can_move = problem.counts[problem.mover_node]
        self._price = self._per_cost * problem.mover_cost
        self.targets: dict[int, int] = {}
        """Where each mover goes, in the order of the moves."""
        self.objective = problem.value
        self._node = problem.mover_node.copy()
        self._headroom = problem.headroom.copy()
        self._deviation = problem.load * self._share - np.where(
            problem.counts[:, None], problem.mean, 0.0
        )
        self._departure = self._departures(np.arange(problem.mover_count))
        kinds, nodes = len(first), problem.node_count
        self._best = np.full(kinds, np.inf)
        self._target = np.zeros(kinds, np.int64)
        self._is_stale = np.zeros(kinds, np.bool_)
        rows = max(1, _CELLS_AT_ONCE // max(1, nodes))
        for start in range(0, kinds, rows):
            self._look_everywhere(np.arange(start, min(start + rows, kinds)))

    @property
    def moves(self) -> Moves:
        return tuple(self.targets.items())

    def copy(self) -> "Descent":
        twin = copy.copy(self)
        for name, value in vars(self).items():
            if name in _STATE:
                setattr(twin, name, value.copy())
        return twin

    def run(self) -> None:
        """Takes the best step for as long as there is one."""
        barred = np.zeros(len(self._node), np.bool_)
        while True:
            mover, target, change = self._best_step(barred)
            if change > -LEAST_GAIN:
                return
            if self.move(mover, target):
                barred[:] = False
            else:
                barred[mover] = True

    def move(self, mover: int, target: int) -> bool:
        """Makes it the mover's one move, or none if that is its own node; False if no order of
        the moves that were there leaves room for it.
        """
        problem, home, source = self.problem, self._home(mover), int(self._node[mover])
        order = self._order_with(mover, target)
        if order is None:
            return False
        self.objective += self._change(mover, target)
        request = problem.mover_request[mover]
        at_home = problem.mover_release[mover]
        self._headroom[source] += at_home if source == home else request
        self._headroom[target] -= at_home if target == home else request
        self._deviation[source] -= problem.mover_load[mover] * self._share[source]
        self._deviation[target] += problem.mover_load[mover] * self._share[target]
        self._node[mover] = target
        self.targets = order
        touched = np.array([source, target])
        nearby = np.flatnonzero(np.isin(self._node, touched))
        self._departure[nearby] = self._departures(nearby)
        self._look_again_at(touched)
        return True

    def gains(self) -> tuple[FloatArray, FloatArray]:
        """(m,) how much each mover's departure alone, and its arrival alone at the best target for
        it, would lower the squared deviation; without what moves cost.
        """
        return -self._departure, -self._best[self._kind]

    def _home(self, mover: int) -> int:
        return int(self.problem.mover_node[mover])

    def _best_step(self, barred: BoolArray) -> tuple[int, int, float]:
        """(mover, target, change of the objective); infinite if nothing may move."""
        moved = np.fromiter(self.targets, np.int64, len(self.targets))
        standing = self._departure + self._price
        standing[moved] = self._departure[moved] - self._charges(moved)
        standing[barred | ~self._can_move] = np.inf
        if len(moved) >= self.problem.max_moves:
            is_moved = np.isin(np.arange(len(standing)), moved)
            standing[~is_moved] = np.inf
        mover, change = self._best_departure(standing)
        target = int(self._target[self._kind[mover]]) if mover >= 0 else -1
        for back, change_back in zip(moved, self._changes_back(moved), strict=True):
            if change_back < change and not barred[back]:
                mover, target, change = int(back), self._home(back), float(change_back)
        return mover, target, change

    def _best_departure(self, standing: FloatArray) -> tuple[int, float]:
        """The mover that does most good at the best target of its kind."""
        while len(standing):
            changes = standing + self._best[self._kind]
            mover = int(np.argmin(changes))
            if not self._is_stale[self._kind[mover]]:
                return mover, float(changes[mover])
            doubtful = np.flatnonzero(self._is_stale[self._kind] & (changes < -LEAST_GAIN))
            if not len(doubtful):
                return mover, float(changes[mover])
            if len(doubtful) > _ROWS_AT_ONCE:
                first = np.argpartition(changes[doubtful], _ROWS_AT_ONCE)[:_ROWS_AT_ONCE]
                doubtful = doubtful[first]
            self._look_everywhere(np.unique(self._kind[doubtful]))
        return -1, np.inf

    def _changes_back(self, moved: IntArray) -> FloatArray:
        """What the objective changes by if they do not move after all."""
        home = self.problem.mover_node[moved]
        share = self.problem.mover_load[moved] * self._share[home]
        arrival = (share * (2 * self._deviation[home] + share)).sum(axis=1)
        refund = self._price[moved] + self._charges(moved)
        return np.asarray(self._departure[moved] + arrival - refund, np.float64)

    def _change(self, mover: int, target: int) -> float:
        one = np.array([mover])
        if target == self._home(mover):
            return float(self._changes_back(one)[0])
        share = self.problem.mover_load[mover] * self._share[target]
        arrival = (share * (2 * self._deviation[target] + share)).sum()
        charge = self.problem.charge[self.problem.mover_class[mover], target] * self._per_cost
        paid = self._charges(one)[0] if mover in self.targets else -self._price[mover]
        return float(self._departure[mover] + arrival + charge - paid)

    def _charges(self, movers: IntArray) -> FloatArray:
        classes = self.problem.mover_class[movers]
        return np.asarray(self._per_cost * self.problem.charge[classes, self._node[movers]])

    def _departures(self, movers: IntArray) -> FloatArray:
        node = self._node[movers]
        share = self.problem.mover_load[movers] * self._share[node]
        return np.asarray((share * (share - 2 * self._deviation[node])).sum(axis=1), np.float64)

    def _arrivals(self, kinds: IntArray, nodes: IntArray) -> FloatArray:
        """(kinds, nodes) what they change, charges included; infinite where they may not go."""
        problem, load, share = self.problem, self._load[kinds], self._share[nodes]
        changes = 2 * load @ (share * self._deviation[nodes]).T + load**2 @ (share**2).T
        classes = self._class[kinds]
        changes += self._per_cost * problem.charge[classes[:, None], nodes]
        bars = ~(problem.allowed[classes[:, None], nodes] & problem.counts[nodes])
        for request, room in zip(self._request[kinds].T, self._headroom[nodes].T, strict=True):
            bars |= (request[:, None] > room) & (request[:, None] != 0)
        changes[bars] = np.inf
        return np.asarray(changes, np.float64)

    def _look_everywhere(self, kinds: IntArray) -> None:
        changes = self._arrivals(kinds, np.arange(self.problem.node_count))
        self._target[kinds] = changes.argmin(axis=1)
        self._best[kinds] = changes.min(axis=1)
        self._is_stale[kinds] = False

    def _look_again_at(self, nodes: IntArray) -> None:
        """A kind whose best target has got worse keeps that as a limit until it matters."""
        changes = self._arrivals(np.arange(len(self._best)), nodes)
        for node, change in zip(nodes, changes.T, strict=True):
            is_better = change < self._best
            self._is_stale[~is_better & (self._target == node) & (change > self._best)] = True
            self._is_stale[is_better] = False
            self._target[is_better] = node
            self._best[is_better] = change[is_better]

    def _order_with(self, mover: int, target: int) -> dict[int, int] | None:
        """The moves in an order that works, with this one in it."""
        if mover not in self.targets:
            return {**self.targets, mover: target}
        others = {i: node for i, node in self.targets.items() if i != mover}
        if target == self._home(mover):
            orders = [others]
        else:
            orders = [{**self.targets, mover: target}, {**others, mover: target}]
        return next((each for each in orders if is_executable(self.problem, each.items())), None)


_STATE = frozenset(
    ("targets", "_node", "_headroom", "_deviation", "_departure", "_best", "_target", "_is_stale")
)
"""What a step changes, besides the objective."""


def is_executable(problem: SpreadProblem, moves: Iterable[tuple[int, int]]) -> bool:
    """Whether each mover, leaving its own node, finds room when its turn comes."""
    headroom = problem.headroom.copy()
    for mover, target in moves:
        request = problem.mover_request[mover]
        if not problem.fits(request, headroom[target]):
            return False
        headroom[target] -= request
        headroom[problem.mover_node[mover]] += problem.mover_release[mover]
    return True


def descend(problem: SpreadProblem, repairs: int) -> Moves:
    """Steepest descent; then some random moves are undone, and it goes on from there.

    `repairs`: how often; equal problems give equal plans.
    """
    best = Descent(problem)
    best.run()
    rng = np.random.default_rng(0)
    for _ in range(repairs if best.targets else 0):
        trial = best.copy()
        movers = rng.permutation(np.fromiter(trial.targets, np.int64, len(trial.targets)))
        for mover in movers[: _undone_of(len(movers))]:
            trial.move(int(mover), int(problem.mover_node[mover]))
        trial.run()
        if trial.objective < best.objective - LEAST_GAIN:
            best = trial
    return best.moves


def _undone_of(move_count: int) -> int:
    """With all of them undone, it would only find the same plan once more."""
    return _UNDONE_AT_ONCE if move_count > _UNDONE_AT_ONCE else (move_count + 1) // 2
