"""A plan in the making, and what every further move would change.

With e the deviation of a node's utilisation from the mean, and a the load of a mover over the
capacity of that node, an arrival adds 2*e*a + a*a and a departure -2*e*a + a*a, summed over the
dimensions. Neither knows of the other, so the best target of a kind of movers is found once for
all of them, and stays known until a better one turns up or it has taken somebody itself.
"""

import copy

import numpy as np

from rebalancer.planning.problem import Moves
from rebalancer.planning.spread_problem import FloatArray, SpreadProblem
from rebalancer.scheduling.state import BoolArray, IntArray

_CELLS_AT_ONCE = 1 << 20
"""Of the table of kinds and nodes, so that memory stays within some tens of MiB."""


class Draft:
    """Which movers go where, in an order in which each finds room.

    The objective is the squared deviation plus `min_gain_per_cost_second` times the cost. Axes as
    in the problem, and k kinds.
    """

    def __init__(self, problem: SpreadProblem) -> None:
        self.problem = problem
        _, first, self.kind = np.unique(problem.kinds, return_index=True, return_inverse=True)
        self.request = problem.mover_request[first]
        """(k, r)"""
        self.load = problem.mover_load[first].astype(np.float64)
        """(k, d)"""
        self.kind_class = problem.mover_class[first]
        self.share = np.where(problem.counts[:, None], 1 / problem.capacity, 0.0)
        """(n, d) utilisation by a load of 1."""
        self.targets: dict[int, int] = {}
        """Where each mover goes, in the order of the moves."""
        self.objective = problem.value
        self.node = problem.mover_node.copy()
        """(m,) where each mover ends up."""
        self.headroom = problem.headroom.copy()
        mean = np.where(problem.counts[:, None], problem.mean, 0.0)
        self.deviation = problem.load * self.share - mean
        self.per_cost = problem.min_gain_per_cost_second / 1000
        self._price = self.per_cost * problem.mover_cost
        self._departure = self._departures(np.arange(problem.mover_count))
        # No arrival brings more than the node lacks, nor more than its load would where that is
        # needed most; the best of a kind is looked for when that is not enough to tell.
        lack = np.minimum(self.deviation, 0)
        slope = (2 * self.share * lack).min(axis=0, initial=0.0)
        self.best = np.maximum(self.load @ slope, (-(lack**2)).sum(axis=1).min(initial=0.0))
        """(k,) what the arrival at the best target adds; where stale, at least that."""
        self.target = np.full(len(first), -1)
        """(k,)"""
        self.is_stale = np.ones(len(first), np.bool_)
        """(k,)"""

    @property
    def moves(self) -> Moves:
        return tuple(self.targets.items())

    @property
    def moved(self) -> IntArray:
        """Movers that have a move, in the order of the moves."""
        return np.fromiter(self.targets, np.int64, len(self.targets))

    def copy(self) -> "Draft":
        twin = copy.copy(self)
        twin.restore(self)
        return twin

    def restore(self, other: "Draft") -> None:
        """Takes over what another draft of the same problem has come to."""
        self.objective = other.objective
        for name in _STATE:
            setattr(self, name, getattr(other, name).copy())

    def gains(self) -> tuple[FloatArray, FloatArray]:
        """(m,) how much each mover's departure alone, and its arrival alone at the best target for
        it, would lower the squared deviation; without what moves cost.
        """
        self.look_everywhere(np.flatnonzero(self.is_stale))
        return -self._departure, -self.best[self.kind]

    def leaving(self) -> FloatArray:
        """(m,) what it adds to the objective that a mover leaves the node it is on in the draft,
        for another than its own; infinite for those that may not move.
        """
        change = self._departure + self._price
        moved = self.moved
        change[moved] = self._departure[moved] - self._charges(moved)
        change[~self.problem.counts[self.problem.mover_node]] = np.inf
        return np.asarray(change, np.float64)

    def going_back(self, movers: IntArray) -> FloatArray:
        """What it adds to the objective that they do not move after all."""
        home = self.problem.mover_node[movers]
        share = self.problem.mover_load[movers] * self.share[home]
        arrival = (share * (2 * self.deviation[home] + share)).sum(axis=1)
        refund = self._price[movers] + self._charges(movers)
        return np.asarray(self._departure[movers] + arrival - refund, np.float64)

    def arrivals(self, kinds: IntArray, nodes: IntArray) -> FloatArray:
        """(kinds, nodes) what they add, charges included; infinite where they cannot go now."""
        problem, load, share = self.problem, self.load[kinds], self.share[nodes]
        changes = 2 * load @ (share * self.deviation[nodes]).T + load**2 @ (share**2).T
        classes = self.kind_class[kinds][:, None]
        changes += self.per_cost * problem.charge[classes, nodes]
        bars = ~(problem.allowed[classes, nodes] & problem.counts[nodes])
        bars |= lacks_room(self.request[kinds], self.headroom[nodes])
        changes[bars] = np.inf
        return np.asarray(changes, np.float64)

    def look_everywhere(self, kinds: IntArray) -> None:
        """Finds their best targets anew."""
        nodes = np.arange(self.problem.node_count)
        rows = max(1, _CELLS_AT_ONCE // max(1, len(nodes)))
        for some in np.split(kinds, range(rows, len(kinds), rows)):
            changes = self.arrivals(some, nodes)
            self.target[some] = changes.argmin(axis=1)
            self.best[some] = changes.min(axis=1)
        self.is_stale[kinds] = False

    def move(self, mover: int, target: int) -> bool:
        """Makes it the mover's one move, or none if that is its own node; False if no order of
        the moves that were there leaves room for it.
        """
        problem, home, source = self.problem, self._home(mover), int(self.node[mover])
        order = self._order_with(mover, target)
        if order is None:
            return False
        self.objective += self._change(mover, target)
        request, at_home = problem.mover_request[mover], problem.mover_release[mover]
        self.headroom[source] += at_home if source == home else request
        self.headroom[target] -= at_home if target == home else request
        self.deviation[source] -= problem.mover_load[mover] * self.share[source]
        self.deviation[target] += problem.mover_load[mover] * self.share[target]
        self.node[mover] = target
        self.targets = order
        touched = np.array([source, target])
        nearby = np.flatnonzero((self.node == source) | (self.node == target))
        self._departure[nearby] = self._departures(nearby)
        self._look_again_at(touched)
        return True

    def _home(self, mover: int) -> int:
        return int(self.problem.mover_node[mover])

    def _change(self, mover: int, target: int) -> float:
        one = np.array([mover])
        if target == self._home(mover):
            return float(self.going_back(one)[0])
        share = self.problem.mover_load[mover] * self.share[target]
        arrival = (share * (2 * self.deviation[target] + share)).sum()
        charge = self.problem.charge[self.problem.mover_class[mover], target] * self.per_cost
        paid = self._charges(one)[0] if mover in self.targets else -self._price[mover]
        return float(self._departure[mover] + arrival + charge - paid)

    def _charges(self, movers: IntArray) -> FloatArray:
        classes = self.problem.mover_class[movers]
        return np.asarray(self.per_cost * self.problem.charge[classes, self.node[movers]])

    def _departures(self, movers: IntArray) -> FloatArray:
        node = self.node[movers]
        share = self.problem.mover_load[movers] * self.share[node]
        return np.asarray((share * (share - 2 * self.deviation[node])).sum(axis=1), np.float64)

    def _look_again_at(self, nodes: IntArray) -> None:
        """A kind whose best target has got worse keeps that as a limit until it matters."""
        changes = self.arrivals(np.arange(len(self.best)), nodes)
        for node, change in zip(nodes, changes.T, strict=True):
            is_better = change < self.best
            self.is_stale[~is_better & (self.target == node) & (change > self.best)] = True
            self.is_stale[is_better] = False
            self.target[is_better] = node
            self.best[is_better] = change[is_better]

    def _order_with(self, mover: int, target: int) -> dict[int, int] | None:
        """The moves in an order that works, with this one in it."""
        if mover not in self.targets:
            fits = self.problem.fits(self.problem.mover_request[mover], self.headroom[target])
            return {**self.targets, mover: target} if fits else None
        targets = {**self.targets, mover: target}
        if target == self._home(mover):
            del targets[mover]
        order = in_order(self.problem, tuple(targets.items()))
        return None if order is None else dict(order)


_STATE = frozenset(
    ("targets", "node", "headroom", "deviation", "_departure", "best", "target", "is_stale")
)
"""What a move changes, besides the objective."""


def lacks_room(request: IntArray, headroom: IntArray) -> BoolArray:
    """(a, b) which requests, (a, r), do not fit in which headroom, (b, r)."""
    lacks = np.zeros((len(request), len(headroom)), np.bool_)
    for asked, room in zip(request.T, headroom.T, strict=True):
        lacks |= (asked[:, None] > room) & (asked[:, None] != 0)
    return lacks


def in_order(problem: SpreadProblem, moves: Moves) -> Moves | None:
    """The moves in an order in which each finds room when its turn comes, so far as possible as
    they are; None if none was found. Each mover moves once.
    """
    headroom = problem.headroom.copy()
    ordered: list[tuple[int, int]] = []
    waiting = list(moves)
    while waiting:
        put_off = []
        for mover, target in waiting:
            request = problem.mover_request[mover]
            if not problem.fits(request, headroom[target]):
                put_off.append((mover, target))
                continue
            headroom[target] -= request
            headroom[problem.mover_node[mover]] += problem.mover_release[mover]
            ordered.append((mover, target))
        if len(put_off) == len(waiting):
            return None
        waiting = put_off
    return tuple(ordered)
