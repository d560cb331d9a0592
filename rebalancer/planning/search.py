"""First stage: best-first search over nodes for sets of movers that go into present room.

Every node has a lower bound (what must leave it); the cheapest set is looked for where the bound
is lowest, and the search ends when no bound is below the best plan found. For a mover in a set that
has no home, making one is the same problem again, one level down; what is open after that is kept
as a bound, for the second stage to close.

The bounds hold for plans with detours as well: they count once each mover that is elsewhere in the
end, and what must have left its last node for good to make room for it.
"""

import heapq
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from rebalancer.planning.bounds import NEVER, price_chains
from rebalancer.planning.chains import home_problem, joined
from rebalancer.planning.cover import Cover, covers, node_cover
from rebalancer.planning.greedy import greedy_plan
from rebalancer.planning.homes import movers_with_home, split_by
from rebalancer.planning.placing import PlacingLimitError, place
from rebalancer.planning.problem import INFINITE, FitProblem, Moves, Outcome, Solution
from rebalancer.planning.reach import reach
from rebalancer.scheduling.state import BoolArray

_LEAST_WORK = 20_000
_WORK_PER_NODE = 40
"""Of all cover searches together, in their steps; work is limited by count, not time, so that equal
snapshots give equal plans. A step takes some 10 microseconds. What tens of thousands of them leave
open the second stage answers sooner, but the more nodes there are, the longer that takes. As much
again goes into chains."""

_CHAIN_STEPS = 2_000
"""Of the search for one mover's home."""

_STEPS_PER_MOVER = 0.2
"""Of such a search, that take as long as its bounds do. Measured."""


def search_direct(problem: FitProblem) -> Outcome:
    """The cheapest plan whose moves all go into present room or into room made for one of them, as
    far as it is found, and a bound for all plans.
    """
    has_room = problem.landing & problem.fits(problem.request, problem.headroom)
    if has_room.any():
        return Outcome(Solution(int(np.argmax(has_room)), (), 0), 0)
    has_home = movers_with_home(problem, problem.headroom)
    if not has_home.any():
        return Outcome(None, INFINITE)
    search = _Search(problem, has_home)
    most = max(_LEAST_WORK, _WORK_PER_NODE * problem.node_count)
    search.run(most)
    if search.best is None and search.open_bound < NEVER:
        search.best = greedy_plan(problem, has_home, search.movers)
    search.follow_chains(most)
    outcome = search.outcome()
    if outcome.solution is None and not reach(problem).can_land.any():
        return Outcome(None, INFINITE)
    return outcome


_NOBODY = np.empty(0, np.int64)


class _Chained(NamedTuple):
    """A set of movers that make room on the node, not all of which have a home."""

    bound: float
    node: int
    movers: tuple[int, ...]


class _Search:
    """State of one search: the best plan so far, and what plans with chains cost at least.

    A mover without a home is not left out but made dearer by what a home for it costs at least,
    so that a set with one in it tells what a chain could do at best.
    """

    def __init__(
        self, problem: FitProblem, has_home: BoolArray, cost_limit: float = INFINITE
    ) -> None:
        self.problem = problem
        self.has_home = has_home
        self.cost_limit = cost_limit
        self.kinds = problem.kinds
        self.movers = split_by(problem.mover_node)
        self.chain_cost = int(problem.mover_cost.min())
        self.best: Solution | None = None
        self.chained: list[_Chained] = []
        """A heap: what has not been looked into yet."""
        self.chain_bound = INFINITE
        """Of what has been."""
        self.open_bound = INFINITE
        self.work = 0.0
        self.priced, self.bounds = price_chains(problem, has_home)

    def run(self, most: float) -> None:
        """`most`: steps of cover searches."""
        heap = [(float(self.bounds[i]), int(i)) for i in np.flatnonzero(self.bounds < INFINITE)]
        heapq.heapify(heap)
        covers_of: dict[int, Iterator[Cover]] = {}
        while heap and heap[0][0] < self._limit and self.work < most:
            known, node = heap[0]
            # Laid out only once the node's turn comes, which for most nodes is never.
            if node not in covers_of:
                covers_of[node] = self._covers(node)
            found = next(covers_of[node], None)
            if found is None:
                heapq.heappop(heap)
                continue
            self.work += found.work
            if found.movers is not None:
                self._try(node, found.movers, found.bound)
            heapq.heapreplace(heap, (max(known, found.bound), node))
        self.open_bound = heap[0][0] if heap else INFINITE

    def follow_chains(self, most: float) -> None:
        """Looks into sets with movers that have no home, as long as they could be cheapest.

        `most`: steps of cover searches for such homes.
        """
        most += self.work
        at_best: dict[int, float] = {}
        while self.chained and self.chained[0].bound < self._limit and self.work < most:
            bound, node, movers = heapq.heappop(self.chained)
            cost = self._cost(movers)
            homeless = [mover for mover in movers if not self.has_home[mover]]
            for mover in homeless:
                if mover not in at_best:
                    at_best[mover] = self._home_for(mover, self.movers[node].tolist()).bound
                bound = max(bound, cost + at_best[mover])
            if bound < self._limit:
                found = {mover: self._home_for(mover, movers) for mover in homeless}
                exact = cost + max(outcome.bound for outcome in found.values())
                # Of those who might leave as well, the cheapest.
                others = np.setdiff1d(self.movers[node], movers)
                more = bound + self.problem.mover_cost[others].min(initial=NEVER)
                bound = max(bound, min(exact, more))
                homes = {i: each.solution for i, each in found.items() if each.solution}
                if len(homes) == len(homeless):
                    self._keep(node, joined(self.problem, movers, node, homes))
            self.chain_bound = min(self.chain_bound, bound)
            self.work += 1

    def outcome(self) -> Outcome:
        next_chained = self.chained[0].bound if self.chained else INFINITE
        bound = min(self.open_bound, self.chain_bound, next_chained)
        return Outcome(self.best, bound).normalised()

    @property
    def _limit(self) -> float:
        """Nothing that costs as much is of interest: neither plans nor bounds."""
        return min(self.best.cost if self.best else INFINITE, self.cost_limit, NEVER)

    def _covers(self, node: int) -> Iterator[Cover]:
        cover = node_cover(self.priced, self.kinds, node, self.movers.get(node, _NOBODY))
        return covers(cover, self.problem.max_moves)

    def _home_for(self, mover: int, leaving: Sequence[int]) -> Outcome:
        """What making one costs; chains in their turn are left open."""
        problem = home_problem(self.problem, mover, leaving)
        left = self._limit - float(self.problem.mover_cost[mover])
        search = _Search(problem, movers_with_home(problem, problem.headroom), left)
        search.run(_CHAIN_STEPS)
        self.work += search.work + _STEPS_PER_MOVER * problem.mover_count
        return search.outcome()

    def _try(self, node: int, movers: tuple[int, ...], bound: float) -> None:
        cost = self._cost(movers)
        if not self.has_home[list(movers)].all():
            heapq.heappush(self.chained, _Chained(max(bound, cost + self.chain_cost), node, movers))
            return
        try:
            moves = place(self.problem, movers, node)
        except PlacingLimitError:
            self.chain_bound = min(self.chain_bound, cost)
            return
        if moves is None:
            self.chain_bound = min(self.chain_bound, cost + self.chain_cost)
            return
        # A dearer target may have been taken although a cheaper one was left for another mover.
        if self.problem.cost(moves) > cost:
            self.chain_bound = min(self.chain_bound, cost)
        self._keep(node, moves)

    def _cost(self, movers: tuple[int, ...]) -> int:
        return int(self.problem.mover_cost[list(movers)].sum())

    def _keep(self, node: int, moves: Moves | None) -> None:
        """If it is the best so far."""
        if moves is not None and (total := self.problem.cost(moves)) < self._limit:
            self.best = Solution(node, moves, total)
