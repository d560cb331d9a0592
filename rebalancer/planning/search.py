"""First stage: best-first search over nodes for sets of movers that go into present room.

Every node has a lower bound (what must leave it); the cheapest set is looked for where the bound
is lowest, and the search ends when no bound is below the best plan found. For a mover in a set that
has no home, or none that the others of the set leave to it, making one is the same problem again,
one level down; what is open after that is kept as a bound, for the second stage to close.

The bounds hold for plans with detours as well: they count once each mover that is elsewhere in the
end, and what must have left its last node for good to make room for it.
"""

import heapq
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from rebalancer.planning.bounds import NEVER, price_chains
from rebalancer.planning.chains import home_problem, joined
from rebalancer.planning.cover import Cover, covers, node_cover
from rebalancer.planning.crowding import Crowding
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

_STEPS_TO_PLACE = 10
_NODES_PER_STEP_TO_PLACE = 50
"""What finding a place for a mover takes as long as: so many steps, and one for so many nodes.
Measured."""

_MAX_DEPTH = 4
"""Moves one after the other that make a home."""

_CHAIN_STEPS = 3_000
"""Of the search for one mover's home."""

_STEPS_PER_MOVER = 0.2
"""Of such a search, that take as long as its bounds do. Measured."""


def search_direct(problem: FitProblem, *, is_brief: bool = False) -> Outcome:
    """The cheapest plan whose moves go into present room or into room that others make for them in
    the same way, as far as it is found, and a bound for all plans.

    `is_brief`: with as little work in a large cluster as in a small one.
    """
    has_room = problem.landing & problem.fits(problem.request, problem.headroom)
    if has_room.any():
        return Outcome(Solution(int(np.argmax(has_room)), (), 0), 0)
    has_home = movers_with_home(problem, problem.headroom)
    if not has_home.any():
        return Outcome(None, INFINITE)
    search = _Search(problem, has_home)
    most = _LEAST_WORK if is_brief else max(_LEAST_WORK, _WORK_PER_NODE * problem.node_count)
    search.run(most)
    if search.best is None and search.open_bound < NEVER and not is_brief:
        search.best = greedy_plan(problem, has_home, search.movers, search.bounds)
    search.follow_chains(most, _MAX_DEPTH)
    outcome = search.outcome()
    if outcome.solution is None and not reach(problem).can_land.any():
        return Outcome(None, INFINITE)
    return outcome


_NOBODY = np.empty(0, np.int64)


class _Chained(NamedTuple):
    """A set of movers that make room on the node, for which present room is not enough."""

    bound: float
    """No plan costs less in which they leave, and of the node's other movers some of `others`."""
    node: int
    movers: tuple[int, ...]
    least: float
    """As `bound`, and what those of `others` that leave cost comes on top."""
    others: tuple[int, ...]
    """Cheapest first."""


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
        """A heap."""
        self.unplaced_bound = INFINITE
        """Of sets for which it is not known whether present room is enough, or how cheaply."""
        self.open_bound = INFINITE
        self.work = 0.0
        self._at_best: dict[int, float] = {}
        """For movers without a home, what making one costs at least, whoever leaves with them."""
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

    def follow_chains(self, most: float, depth: int) -> None:
        """Looks into sets that present room does not take, as long as they could be cheapest: what
        a home costs that others make by moving into present room, then by moving into room that is
        made for them, and so on.

        `most`: steps of cover searches for such homes.
        """
        end = self.work + most
        for moves_before in range(1, depth + 1):
            known = self.outcome()
            self._look_into_sets(moves_before, end)
            if self.outcome() == known:
                break

    def _look_into_sets(self, depth: int, end: float) -> None:
        looked_into = []
        while self.chained and self.chained[0].bound < self._limit and self.work < end:
            found = heapq.heappop(self.chained)
            least = max(found.least, self._cost(found.movers) + self._homes_at_best(found))
            found = found._replace(bound=max(found.bound, least), least=least)
            if found.bound < self._limit:
                found = self._make_homes(found, depth)
            looked_into.append(found)
            self.work += 1
        for chained in looked_into:
            heapq.heappush(self.chained, chained)

    def _homes_at_best(self, found: _Chained) -> float:
        """What making room for the set costs at least, whoever else leaves the node."""
        homeless = self._homeless(found.movers)
        if not homeless:
            return self._crowding.bound(found.movers)
        leaving = self.movers[found.node].tolist()
        for mover in homeless:
            if mover not in self._at_best:
                problem = home_problem(self.problem, mover, leaving)
                self._at_best[mover] = self._search_home(problem, self._cost([mover]), 0).bound
        return max(self._at_best[mover] for mover in homeless)

    def _homeless(self, movers: Sequence[int]) -> list[int]:
        return [mover for mover in movers if not self.has_home[mover]]

    def _make_homes(self, found: _Chained, depth: int) -> _Chained:
        """What is known of the set then."""
        movers = found.movers
        homeless = self._homeless(movers)
        if not homeless:
            for mover in movers:
                self._make_home_beside_others(mover, found, depth)
            return found
        homes = {mover: self._home_for(mover, movers, self.problem, depth) for mover in homeless}
        plans = {mover: home.solution for mover, home in homes.items() if home.solution}
        if len(plans) == len(homeless):
            self._keep(found.node, joined(self.problem, movers, found.node, plans))
        alone = self._cost(movers) + max(home.bound for home in homes.values())
        if found.others and alone > found.least + self._cost(found.others[:1]):
            self._add_others(found)
            found = found._replace(others=())
        return found._replace(bound=max(found.bound, alone))

    def _add_others(self, found: _Chained) -> None:
        """The set with each of the others that may leave as well, as sets of their own."""
        for i, other in enumerate(found.others):
            least = found.least + self._cost([other])
            if least < self._limit:
                movers, others = (*found.movers, other), found.others[i + 1 :]
                larger = _Chained(max(found.bound, least), found.node, movers, least, others)
                heapq.heappush(self.chained, larger)

    def _make_home_beside_others(self, mover: int, found: _Chained, depth: int) -> None:
        """The others of the set take present room."""
        others = [other for other in found.movers if other != mover]
        try:
            placed = place(self.problem, others, found.node)
        except PlacingLimitError:
            return
        if placed is None:
            return
        headroom = self.problem.headroom.copy()
        for other, target in placed:
            headroom[target] -= self.problem.mover_request[other]
        crowded = replace(self.problem, headroom=headroom)
        home = self._home_for(mover, found.movers, crowded, depth).solution
        if home is not None:
            self._keep(found.node, joined(self.problem, found.movers, found.node, {mover: home}))

    def _home_for(
        self, mover: int, leaving: Sequence[int], problem: FitProblem, depth: int
    ) -> Outcome:
        """What making one costs where just these leave its node."""
        home = home_problem(problem, mover, leaving)
        return self._search_home(home, self._cost(leaving), depth - 1)

    def _search_home(self, problem: FitProblem, spent: int, depth: int) -> Outcome:
        has_home = movers_with_home(problem, problem.headroom)
        search = _Search(problem, has_home, self._limit - spent)
        search.run(_CHAIN_STEPS)
        search.follow_chains(_CHAIN_STEPS, depth)
        self.work += search.work + _STEPS_PER_MOVER * problem.mover_count
        return search.outcome()

    def outcome(self) -> Outcome:
        chained_bound = self.chained[0].bound if self.chained else INFINITE
        bound = min(self.open_bound, self.unplaced_bound, chained_bound)
        return Outcome(self.best, bound if bound < NEVER else INFINITE).normalised()

    @cached_property
    def _crowding(self) -> Crowding:
        return Crowding(self.problem)

    @property
    def _limit(self) -> float:
        """Nothing that costs as much is of interest: neither plans nor bounds."""
        return min(self.best.cost if self.best else INFINITE, self.cost_limit, NEVER)

    def _covers(self, node: int) -> Iterator[Cover]:
        cover = node_cover(self.priced, self.kinds, node, self.movers.get(node, _NOBODY))
        return covers(cover, self.problem.max_moves)

    def _try(self, node: int, movers: tuple[int, ...], bound: float) -> None:
        cost = self._cost(movers)
        steps = _STEPS_TO_PLACE + self.problem.node_count / _NODES_PER_STEP_TO_PLACE
        self.work += steps * len(movers)
        homeless = self._homeless(movers)
        try:
            moves = None if homeless else place(self.problem, movers, node)
        except PlacingLimitError:
            self.unplaced_bound = min(self.unplaced_bound, cost)
            return
        if moves is None:
            least = max(bound, cost + self.chain_cost)
            # Where all have a home, the bound holds whoever else leaves.
            others = self._besides(node, movers) if homeless else ()
            heapq.heappush(self.chained, _Chained(least, node, movers, least, others))
            return
        # A dearer target may have been taken although a cheaper one was left for another mover.
        if self.problem.cost(moves) > cost:
            self.unplaced_bound = min(self.unplaced_bound, cost)
        self._keep(node, moves)

    def _besides(self, node: int, movers: Sequence[int]) -> tuple[int, ...]:
        """Who else is on the node, cheapest first."""
        others = np.setdiff1d(self.movers[node], movers)
        order = np.argsort(self.problem.mover_cost[others], kind="stable")
        return tuple(others[order].tolist())

    def _cost(self, movers: Sequence[int]) -> int:
        return int(self.problem.mover_cost[list(movers)].sum())

    def _keep(self, node: int, moves: Moves | None) -> None:
        """If it is the best so far."""
        if moves is not None and (total := self.problem.cost(moves)) < self._limit:
            self.best = Solution(node, moves, total)
