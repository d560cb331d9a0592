"""Which movers must leave one node so that the item has room there: cheapest sets first."""

import heapq
from collections.abc import Iterator
from itertools import count
from operator import le, sub
from typing import NamedTuple

import numpy as np

from rebalancer.planning.problem import INFINITE, FitProblem
from rebalancer.planning.remainders import Remainders
from rebalancer.scheduling.state import IntArray

Vector = tuple[int, ...]
"""(d,) by resource. Sets are small and steps many, so plain numbers beat arrays."""


class NodeCover(NamedTuple):
    """What one node lacks for the item, and the movers there that could give it.

    Movers are in the order of their cost; of the resources only those that are short count.
    """

    deficit: Vector
    movers: tuple[int, ...]
    gain: tuple[Vector, ...]
    """What each mover gives."""
    cost: tuple[int, ...]
    kind: tuple[int, ...]
    """Movers of one kind and cost are interchangeable."""
    by_price: tuple[tuple[int, ...], ...]
    """For each resource the positions of the movers that give some, cheapest per unit first."""

    def bound(self, start: int, lack: Vector) -> float:
        """No set of the movers from `start` on that gives `lack` costs less.

        For each resource alone, the fractional cover: cheapest per unit first, the last in part.
        """
        bound = 0.0
        for d, left in enumerate(lack):
            if left > 0 and (cost := self._cost_of(start, d, left)) > bound:
                bound = cost
        return bound

    def _cost_of(self, start: int, d: int, left: int) -> float:
        spent = 0
        for i in self.by_price[d]:
            if i < start:
                continue
            given = self.gain[i][d]
            if given >= left:
                return spent + self.cost[i] * left / given
            left -= given
            spent += self.cost[i]
        return INFINITE


def node_cover(problem: FitProblem, kinds: IntArray, node: int, movers: IntArray) -> NodeCover:
    """`movers`: indexes of those on the node that may be taken; `kinds`: of all movers."""
    lack = problem.request - problem.headroom[node]
    short = np.flatnonzero((lack > 0) & (problem.request > 0))
    order = movers[np.lexsort((movers, problem.mover_cost[movers]))]
    gain, cost = problem.mover_release[order][:, short], problem.mover_cost[order]
    return NodeCover(
        deficit=tuple(lack[short].tolist()),
        movers=tuple(order.tolist()),
        gain=tuple(map(tuple, gain.tolist())),
        cost=tuple(cost.tolist()),
        kind=tuple(kinds[order].tolist()),
        by_price=tuple(_by_price(column, cost) for column in gain.T),
    )


def _by_price(gain: IntArray, cost: IntArray) -> tuple[int, ...]:
    useful = np.flatnonzero(gain > 0)
    return tuple(useful[np.argsort(cost[useful] / gain[useful], kind="stable")].tolist())


class Cover(NamedTuple):
    """What has become known of one node by one step of the search there."""

    bound: float
    """No set that has not come yet costs less."""
    movers: tuple[int, ...] | None
    """A set that costs the bound, if the step came to one."""
    work: int
    """In steps."""


_FRACTIONAL_STEPS = 200
"""After so many the fractional bound has turned out too weak, and a table of whole movers pays: it
takes as long as some hundreds. Measured."""

_CELLS_PER_STEP = 20
"""Of the table, that take as long to fill as one step of the search. Measured."""


class _State(NamedTuple):
    """Of the first `start` movers those in `taken` leave, the others stay."""

    bound: float
    tie: int
    start: int
    taken: tuple[int, ...]
    cost: int
    lack: Vector


def covers(node: NodeCover, max_moves: int) -> Iterator[Cover]:
    """Sets of movers that give what the node lacks, cheapest first, none with a useless member.

    A caller can stop at any time with a valid bound. Best-first search. What is still to be taken
    is bounded by the fractional cover at first, then by whole movers.
    """
    ties = count()
    heap: list[_State] = []
    remainders: Remainders | None = None
    end = len(node.movers)

    def push(known: float, start: int, taken: tuple[int, ...], cost: int, lack: Vector) -> None:
        if (start == end or len(taken) == max_moves) and max(lack) > 0:
            return
        rest = remainders.bound(start, taken) if remainders else node.bound(start, lack)
        bound = max(known, cost + rest)
        if bound < INFINITE:
            heapq.heappush(heap, _State(bound, next(ties), start, taken, cost, lack))

    push(0, 0, (), 0, node.deficit)
    for step in count():
        work = 1
        if step == _FRACTIONAL_STEPS:
            remainders = Remainders(node.deficit, node.gain, node.cost, max_moves)
            work += remainders.cells // _CELLS_PER_STEP
            states, heap = heap, []
            for state in states:
                push(state.bound, state.start, state.taken, state.cost, state.lack)
        if not heap:
            return
        bound, _, start, taken, cost, lack = heapq.heappop(heap)
        if max(lack) <= 0:
            is_lean = not _has_useless_member(node, taken)
            yield Cover(bound, tuple(node.movers[i] for i in taken) if is_lean else None, work)
            continue
        yield Cover(bound, None, work)
        left = tuple(map(sub, lack, node.gain[start]))
        push(bound, start + 1, (*taken, start), cost + node.cost[start], left)
        push(bound, _after_equals(node, start), taken, cost, lack)


def whole_bound(node: NodeCover, max_moves: int) -> float:
    """No set of whole movers that gives what the node lacks costs less."""
    return Remainders(node.deficit, node.gain, node.cost, max_moves).bound(0, ())


def _after_equals(node: NodeCover, start: int) -> int:
    """Of equal movers the first are taken, so one left out leaves out those equal to it next."""
    end = start + 1
    while (
        end < len(node.movers)
        and node.kind[end] == node.kind[start]
        and node.cost[end] == node.cost[start]
    ):
        end += 1
    return end


def _has_useless_member(node: NodeCover, taken: tuple[int, ...]) -> bool:
    given = [node.gain[i] for i in taken]
    totals = map(sum, zip(*given, strict=True))
    spare = [total - lacks for total, lacks in zip(totals, node.deficit, strict=True)]
    return any(all(map(le, gains, spare)) for gains in given)
