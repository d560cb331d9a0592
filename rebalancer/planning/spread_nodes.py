"""What each node would do by itself if every departure and every arrival had a price.

It takes whole movers, as many as it has room for. Sets of them are looked at smallest first, and
one is left once no larger set can be better. The bound for that is linear: with slopes w such
that no single mover of effect v costs less than w.v, a set of price p that leaves the deviation e
comes to at least p - g*w.e - (g*|w|)**2 / 4 with all that may be added, for every g from 0 to 1.
"""

from typing import NamedTuple

import numpy as np

from rebalancer.planning.spread_problem import FloatArray, SpreadProblem
from rebalancer.scheduling.state import BoolArray, IntArray

_MOST_SETS = 300
_LARGEST_SET = 8
"""With more sets to extend, or larger ones, a node's answer is the bound of what is left."""
_SLOPE_STEPS = 6
_ROUNDING = 1e-12


class Choice(NamedTuple):
    """What all nodes do at some prices."""

    least: float
    """No choice has a lower sum of squared deviations and prices."""
    departures: IntArray
    """(k,) of each kind."""
    arrivals: IntArray
    """(k,) of each kind."""


class _Items(NamedTuple):
    """Single departures and arrivals. Axes: i items, d dimensions, r resources."""

    node: IntArray
    kind: IntArray
    is_arrival: BoolArray
    effect: FloatArray
    """(i, d) what the node's utilisation changes by."""
    price: FloatArray
    room: IntArray
    """(i, r) what the node's headroom changes by."""

    def at(self, which: IntArray | BoolArray) -> "_Items":
        return _Items._make(column[which] for column in self)


class NodeChoices:
    """Nodes and kinds as they are before any move. Axes besides the problem's: k kinds."""

    def __init__(self, problem: SpreadProblem) -> None:
        counts = problem.counts
        self._problem = problem
        _, first, self.kind = np.unique(problem.kinds, return_index=True, return_inverse=True)
        self._share = np.where(counts[:, None], 1 / problem.capacity, 0.0)
        self._deviation = np.where(counts[:, None], problem.load * self._share - problem.mean, 0.0)
        self._still = (self._deviation**2).sum(axis=1)
        self._leaving = np.flatnonzero(counts[problem.mover_node])
        self._request = problem.mover_request[first]
        self._load = problem.mover_load[first].astype(np.float64)
        # Kinds that differ only in where they may go and what they leave behind: the cheapest
        # that a node may get stands for them all.
        same = np.hstack([self._request, self._load])
        _, group = np.unique(same, axis=0, return_inverse=True)
        self._group = group.reshape(-1)
        room = problem.headroom.copy()
        np.add.at(room, problem.mover_node, problem.mover_release)
        self._may_arrive = problem.allowed[problem.mover_class[first]] & counts
        for asked, most in zip(self._request.T, room.T, strict=True):
            self._may_arrive &= (asked[:, None] <= most) | (asked[:, None] == 0)

    @property
    def kind_count(self) -> int:
        return len(self._group)

    def at(self, move_price: float, arrival_price: FloatArray) -> Choice:
        """`arrival_price`: (k,) positive; a departure costs the rest of the move's price."""
        items = self._items(move_price, arrival_price)
        slope = _slopes(self._deviation, items)
        surplus = np.maximum(items.price - (slope[items.node] * items.effect).sum(axis=1), 0)
        floor = _floor(slope, self._deviation, np.zeros(len(slope)))
        useful = surplus < (self._still - floor)[items.node]
        items, surplus = items.at(useful), surplus[useful]
        order = np.lexsort((items.kind, surplus, items.is_arrival, items.node))
        items = items.at(order)
        search = _Search(self._deviation, slope, items, surplus[order])
        search.run(self._problem.headroom)
        taken = items.at(search.taken())
        arrived = np.bincount(taken.kind[taken.is_arrival], minlength=self.kind_count)
        departed = np.bincount(taken.kind[~taken.is_arrival], minlength=self.kind_count)
        return Choice(float(np.minimum(search.best, search.open).sum()), departed, arrived)

    def _items(self, move_price: float, arrival_price: FloatArray) -> _Items:
        """Only those that may be worth their price."""
        problem = self._problem
        by_price = np.lexsort((arrival_price, self._group))
        starts = np.flatnonzero(np.diff(self._group[by_price], prepend=-1))
        rank = np.where(self._may_arrive[by_price], np.arange(self.kind_count)[:, None], 1 << 40)
        cheapest = np.minimum.reduceat(rank, starts, axis=0)
        group, node = np.nonzero(cheapest < self.kind_count)
        kind = by_price[cheapest[group, node]]
        arrivals = _Items(
            node=node,
            kind=kind,
            is_arrival=np.ones(len(node), np.bool_),
            effect=self._load[kind] * self._share[node],
            price=arrival_price[kind],
            room=-self._request[kind],
        )
        movers = self._leaving
        node, kind = problem.mover_node[movers], self.kind[movers]
        departures = _Items(
            node=node,
            kind=kind,
            is_arrival=np.zeros(len(node), np.bool_),
            effect=-self._load[kind] * self._share[node],
            price=move_price - arrival_price[kind],
            room=problem.mover_release[movers],
        )
        items = _Items._make(map(np.concatenate, zip(departures, arrivals, strict=True)))
        return items.at(items.price < self._still[items.node])


def _floor(slope: FloatArray, deviation: FloatArray, price: FloatArray) -> FloatArray:
    """The bound of the module's docstring at its best g; rows are sets."""
    along = (slope * deviation).sum(axis=1)
    steep = (slope**2).sum(axis=1)
    g = np.clip(-2 * along / np.maximum(steep, 1e-300), 0, 1)
    return np.asarray(price - g * along - g * g * steep / 4, np.float64)


def _slopes(deviation: FloatArray, items: _Items) -> FloatArray:
    """(n, d) valid slopes, near to those with the highest floor.

    Those are the point nearest to -2e that no item's price bars. It is found from the price that
    bars most, and the one before; what is still barred is put right by shrinking.
    """
    ideal = -2 * deviation
    slope = ideal.copy()
    length = np.sqrt((items.effect**2).sum(axis=1))
    before = np.full(len(slope), -1)
    for _ in range(_SLOPE_STEPS):
        over = (slope[items.node] * items.effect).sum(axis=1) - items.price
        barring = np.flatnonzero(over > _ROUNDING)
        by_node = np.lexsort((-over[barring] / length[barring], items.node[barring]))
        node, first = np.unique(items.node[barring][by_node], return_index=True)
        worst = barring[by_node][first]
        slope[node] = _nearest(ideal[node], items, worst, before[node])
        before[node] = worst
    worth = (slope[items.node] * items.effect).sum(axis=1)
    shrink = np.ones(len(slope))
    too_much = worth > items.price
    np.minimum.at(shrink, items.node[too_much], items.price[too_much] / worth[too_much])
    return slope * shrink[:, None]


def _nearest(ideal: FloatArray, items: _Items, one: IntArray, other: IntArray) -> FloatArray:
    """The points nearest to the ideal on one item's line, or where it meets the other's."""
    a, b = items.effect[one], items.effect[other]
    over_a = (ideal * a).sum(axis=1) - items.price[one]
    over_b = (ideal * b).sum(axis=1) - items.price[other]
    aa, bb, ab = (a * a).sum(axis=1), (b * b).sum(axis=1), (a * b).sum(axis=1)
    det = aa * bb - ab * ab
    has_both = (other >= 0) & (det > _ROUNDING * aa * bb)
    det = np.where(has_both, det, 1)
    x, y = (over_a * bb - over_b * ab) / det, (over_b * aa - over_a * ab) / det
    has_both &= (x > 0) & (y > 0)
    x = np.where(has_both, x, np.maximum(over_a, 0) / aa)
    y = np.where(has_both, y, 0)
    return np.asarray(ideal - x[:, None] * a - y[:, None] * b, np.float64)


class _Sets(NamedTuple):
    """Sets of one size, each one item more than its parent."""

    node: IntArray
    last: IntArray
    """The item that was added; -1 where there is none yet."""
    parent: IntArray
    deviation: FloatArray
    """(s, d) of the node with this set."""
    price: FloatArray
    surplus: FloatArray
    room: IntArray
    """(s, r)"""

    def at(self, which: IntArray | BoolArray) -> "_Sets":
        return _Sets._make(column[which] for column in self)


class _Search:
    """Goes through the sets of all nodes together, level by level.

    Departures are added before arrivals, and those with less surplus over the slopes before those
    with more, so each set is met once, and what may be added is a range of the items.
    """

    def __init__(
        self, deviation: FloatArray, slope: FloatArray, items: _Items, surplus: FloatArray
    ) -> None:
        self._deviation = deviation
        self._slope = slope
        self._items = items
        self._surplus = surplus
        self._whole_floor = -(slope**2).sum(axis=1) / 4 - (slope * deviation).sum(axis=1)
        self.best = (deviation**2).sum(axis=1)
        """(n,) the best set of each node that was met."""
        self.open = np.full(len(deviation), np.inf)
        """(n,) what the sets that were not gone into come to at least."""
        self._best_set = np.full((len(deviation), 2), -1)
        self._levels: list[_Sets] = []
        self._scale = 1.001 * max(surplus.max(initial=0), (self.best - self._whole_floor).max()) + 1
        # Equal departures stand side by side; one is taken only after those before it.
        same = (np.diff(items.node) == 0) & (np.diff(items.kind) == 0) & ~items.is_arrival[1:]
        self._needs_one_before = np.concatenate([[False], same])[: len(items.node)]
        self._key = self._keys(items.node, items.is_arrival, surplus)
        self._arrivals_from = np.searchsorted(self._key, 2 * np.arange(len(deviation)) + 1)
        self._departures_from = np.searchsorted(self._key, 2 * np.arange(len(deviation)))

    def run(self, headroom: IntArray) -> None:
        nodes = np.unique(self._items.node)
        nothing = np.full(len(nodes), -1)
        zero = np.zeros(len(nodes))
        sets = _Sets(nodes, nothing, nothing, self._deviation[nodes], zero, zero, headroom[nodes])
        while len(sets.node):
            self._levels.append(sets)
            self._note_best(sets)
            sets = self._extended(sets)

    def taken(self) -> IntArray:
        """The items of the best sets of all nodes together."""
        taken = [np.empty(0, np.int64)]
        index = np.empty(0, np.int64)
        for level in range(len(self._levels) - 1, 0, -1):
            sets = self._levels[level]
            begins = self._best_set[self._best_set[:, 0] == level, 1]
            index = np.concatenate([index, begins])
            taken.append(sets.last[index])
            index = sets.parent[index]
        return np.concatenate(taken)

    def _keys(self, node: IntArray, is_arrival: BoolArray, surplus: FloatArray) -> FloatArray:
        return np.asarray(2 * node + is_arrival + surplus / self._scale, np.float64)

    def _note_best(self, sets: _Sets) -> None:
        value = (sets.deviation**2).sum(axis=1) + sets.price
        order = np.lexsort((value, sets.node))
        node, first = np.unique(sets.node[order], return_index=True)
        which = order[first]
        better = value[which] < self.best[node]
        self.best[node[better]] = value[which[better]]
        self._best_set[node[better], 0] = len(self._levels) - 1
        self._best_set[node[better], 1] = which[better]

    def _extended(self, sets: _Sets) -> _Sets:
        floor = _floor(self._slope[sets.node], sets.deviation, sets.price)
        hopeful = floor < self.best[sets.node] - _ROUNDING
        sets, floor = sets.at(hopeful), floor[hopeful]
        budget = self.best[sets.node] - self._whole_floor[sets.node] - sets.surplus
        start, end = self._ranges(sets, np.maximum(budget, 0))
        count = np.maximum(end - start, 0)
        of_node = np.bincount(np.tile(sets.node, 2), count.ravel(), len(self.best))
        too_many = of_node > (_MOST_SETS if len(self._levels) <= _LARGEST_SET else 0)
        given_up = too_many[sets.node] & (count.sum(axis=0) > 0)
        np.minimum.at(self.open, sets.node[given_up], floor[given_up])
        count[:, too_many[sets.node]] = 0
        count, start = count.ravel(), start.ravel()
        offset = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        item = np.repeat(start, count) + offset
        parent = np.repeat(np.tile(np.arange(len(sets.node)), 2), count)
        return self._with(sets, np.flatnonzero(hopeful), parent, item)

    def _ranges(self, sets: _Sets, budget: FloatArray) -> tuple[IntArray, IntArray]:
        """(2, s) the departures, then the arrivals, that may be added to each set."""
        node, last = sets.node, sets.last
        no, yes = np.zeros(len(node), np.bool_), np.ones(len(node), np.bool_)
        has_arrivals = last >= self._arrivals_from[node]
        end = np.array(
            [
                np.searchsorted(self._key, self._keys(node, no, budget), side="right"),
                np.searchsorted(self._key, self._keys(node, yes, budget), side="right"),
            ]
        )
        start = np.array(
            [
                np.where(last < 0, self._departures_from[node], last + 1),
                np.where(has_arrivals, last, self._arrivals_from[node]),
            ]
        )
        end[0, has_arrivals] = 0
        return start, end

    def _with(self, sets: _Sets, index: IntArray, parent: IntArray, item: IntArray) -> _Sets:
        """Those of the larger sets that there is room for."""
        items, room = self._items, sets.room[parent] + self._items.room[item]
        fits = ((room >= 0) | (items.room[item] >= 0)).all(axis=1)
        fits &= ~self._needs_one_before[item] | (sets.last[parent] == item - 1)
        parent, item = parent[fits], item[fits]
        return _Sets(
            node=sets.node[parent],
            last=item,
            parent=index[parent],
            deviation=sets.deviation[parent] + items.effect[item],
            price=sets.price[parent] + items.price[item],
            surplus=sets.surplus[parent] + self._surplus[item],
            room=room[fits],
        )
