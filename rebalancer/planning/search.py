"""First stage: best-first search over nodes for sets of movers that go into present room.

Every node has a lower bound (what must leave it); the cheapest set is looked for where the bound
is lowest, and the search ends when no bound is below the best plan found. What only chains of
moves could reach is kept as a bound, for the second stage to close.

The bounds hold for plans with detours as well: they count once each mover that is elsewhere in the
end, and what must have left its last node for good to make room for it.
"""

import heapq
from collections.abc import Iterator

import numpy as np

from rebalancer.planning.bounds import NEVER, price_chains
from rebalancer.planning.cover import Cover, covers, node_cover
from rebalancer.planning.greedy import greedy_plan
from rebalancer.planning.homes import movers_with_home, split_by
from rebalancer.planning.placing import PlacingLimitError, place
from rebalancer.planning.problem import INFINITE, FitProblem, Outcome, Solution
from rebalancer.planning.reach import reach
from rebalancer.scheduling.state import BoolArray

_LEAST_WORK = 20_000
_WORK_PER_NODE = 40
"""Of all cover searches together, in their steps; work is limited by count, not time, so that equal
snapshots give equal plans. A step takes some 10 microseconds. What tens of thousands of them leave
open the second stage answers sooner, but the more nodes there are, the longer that takes."""


def search_direct(problem: FitProblem) -> Outcome:
    """The cheapest plan whose moves all go into present room, and a bound for all plans."""
    has_room = problem.landing & problem.fits(problem.request, problem.headroom)
    if has_room.any():
        return Outcome(Solution(int(np.argmax(has_room)), (), 0), 0)
    has_home = movers_with_home(problem, problem.headroom)
    if not has_home.any():
        return Outcome(None, INFINITE)
    outcome = _Search(problem, has_home).run()
    if outcome.solution is None and not reach(problem).can_land.any():
        return Outcome(None, INFINITE)
    return outcome


_NOBODY = np.empty(0, np.int64)


class _Search:
    """State of one search: the best plan so far, and what plans with chains cost at least.

    A mover without a home is not left out but made dearer by what a home for it costs at least,
    so that a set with one in it tells what a chain could do at best.
    """

    def __init__(self, problem: FitProblem, has_home: BoolArray) -> None:
        self.problem = problem
        self.has_home = has_home
        self.kinds = problem.kinds
        self.movers = split_by(problem.mover_node)
        self.chain_cost = int(problem.mover_cost.min())
        self.best: Solution | None = None
        self.chain_bound = INFINITE
        self.priced, self.bounds = price_chains(problem, has_home)

    def run(self) -> Outcome:
        heap = [(float(self.bounds[i]), int(i)) for i in np.flatnonzero(self.bounds < INFINITE)]
        heapq.heapify(heap)
        covers_of: dict[int, Iterator[Cover]] = {}
        work = 0
        most = max(_LEAST_WORK, _WORK_PER_NODE * self.problem.node_count)
        while heap and heap[0][0] < self._limit and work < most:
            known, node = heapq.heappop(heap)
            # Laid out only once the node's turn comes, which for most nodes is never.
            candidates = covers_of.setdefault(node, self._covers(node))
            found = next(candidates, None)
            if found is None:
                continue
            work += found.work
            if found.movers is not None:
                self._try(node, found.movers, found.bound)
            heapq.heappush(heap, (max(known, found.bound), node))
        if self.best is None and heap and heap[0][0] < NEVER:
            self.best = greedy_plan(self.problem, self.has_home, self.movers)
        open_bound = heap[0][0] if heap else INFINITE
        return Outcome(self.best, min(open_bound, self.chain_bound)).normalised()

    @property
    def _limit(self) -> float:
        """Nothing that costs as much is of interest: neither plans nor bounds."""
        return min(self.best.cost if self.best else INFINITE, NEVER)

    def _covers(self, node: int) -> Iterator[Cover]:
        cover = node_cover(self.priced, self.kinds, node, self.movers.get(node, _NOBODY))
        yield from covers(cover, self.problem.max_moves)

    def _try(self, node: int, movers: tuple[int, ...], bound: float) -> None:
        cost = int(self.problem.mover_cost[list(movers)].sum())
        if not self.has_home[list(movers)].all():
            self.chain_bound = min(self.chain_bound, max(bound, cost + self.chain_cost))
            return
        try:
            moves = place(self.problem, movers, node)
        except PlacingLimitError:
            self.chain_bound = min(self.chain_bound, cost)
            return
        if moves is None:
            self.chain_bound = min(self.chain_bound, cost + self.chain_cost)
            return
        total = self.problem.cost(moves)
        # A dearer target may have been taken although a cheaper one was left for another mover.
        if total > cost:
            self.chain_bound = min(self.chain_bound, cost)
        if self.best is None or total < self.best.cost:
            self.best = Solution(node, moves, total)
