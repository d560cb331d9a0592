"""Which movers must leave one node so that the item has room there: cheapest sets first."""

import heapq
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rebalancer.planning.problem import INFINITE, FitProblem
from rebalancer.scheduling.state import IntArray


class NodeCover(NamedTuple):
    """What one node lacks for the item, and the movers there that could give it.

    `movers` are sorted by cost; `deficit` keeps only the resources that are short, so
    `gain[i, d]` is what mover i gives of the d-th of them. Axes: movers (on the node), d.
    """

    node: int
    deficit: IntArray
    movers: IntArray
    gain: IntArray
    cost: IntArray
    kind: tuple[tuple[int, int], ...]
    """Equal for movers that are interchangeable: same kind and cost."""

    def bound(self, start: int, lack: IntArray) -> float:
        """No set of the movers from `start` on that gives `lack` costs less.

        For each resource alone, the fractional cover: cheapest per unit first, the last in part.
        """
        worst = 0.0
        for d in np.flatnonzero(lack > 0):
            gain = self.gain[start:, d]
            useful = np.flatnonzero(gain > 0)
            order = useful[np.argsort(self.cost[start:][useful] / gain[useful], kind="stable")]
            given = np.cumsum(gain[order])
            if not len(given) or given[-1] < lack[d]:
                return INFINITE
            last = int(np.searchsorted(given, lack[d]))
            costs = self.cost[start:][order]
            over = (given[last] - lack[d]) / gain[order[last]]
            worst = max(worst, float(costs[: last + 1].sum() - costs[last] * over))
        return worst


def node_cover(problem: FitProblem, kinds: IntArray, node: int, movers: IntArray) -> NodeCover:
    """`movers`: indexes of those on the node that may be taken; `kinds`: of all movers."""
    lack = problem.request - problem.headroom[node]
    short = np.flatnonzero((lack > 0) & (problem.request > 0))
    order = movers[np.lexsort((movers, problem.mover_cost[movers]))]
    return NodeCover(
        node=node,
        deficit=lack[short],
        movers=order,
        gain=problem.mover_release[order][:, short],
        cost=problem.mover_cost[order],
        kind=tuple(zip(kinds[order].tolist(), problem.mover_cost[order].tolist(), strict=True)),
    )


Cover = tuple[float, tuple[int, ...] | None]
"""What a set of movers costs at least, and the set, once it is whole."""


def covers(node: NodeCover, max_moves: int) -> Iterator[Cover]:
    """Sets of movers that give what the node lacks, cheapest first, none with a useless member.

    Yields (cost, movers); where only a bound of what follows is known yet, movers is None, so
    that a caller can stop at any time with a valid bound. Best-first search: a state is the
    movers taken among the first `start`, and its bound is the fractional cover of the rest.
    """
    heap: list[tuple[float, int, int, tuple[int, ...], tuple[int, ...]]] = []
    ties = iter(range(1 << 62))

    def push(cost: int, start: int, taken: tuple[int, ...], lack: IntArray) -> None:
        bound = cost + node.bound(start, lack)
        if bound < INFINITE and (len(taken) < max_moves or (lack <= 0).all()):
            heapq.heappush(heap, (bound, next(ties), start, taken, tuple(map(int, lack))))

    push(0, 0, (), node.deficit)
    while heap:
        bound, _, start, taken, left = heapq.heappop(heap)
        lack = np.array(left, np.int64)
        cost = int(node.cost[list(taken)].sum()) if taken else 0
        if (lack <= 0).all():
            if not _has_useless_member(node, taken):
                yield bound, tuple(int(node.movers[i]) for i in taken)
            continue
        yield bound, None
        push(cost + int(node.cost[start]), start + 1, (*taken, start), lack - node.gain[start])
        push(cost, _after_equals(node, start), taken, lack)


def _after_equals(node: NodeCover, start: int) -> int:
    """Of equal movers the first are taken, so one left out leaves out those equal to it next."""
    end = start + 1
    while end < len(node.kind) and node.kind[end] == node.kind[start]:
        end += 1
    return end


def _has_useless_member(node: NodeCover, taken: tuple[int, ...]) -> bool:
    given = node.gain[list(taken)]
    spare = given.sum(axis=0) - node.deficit
    return bool((given <= spare).all(axis=1).any())
