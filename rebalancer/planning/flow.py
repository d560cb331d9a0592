"""Second stage: what only longer chains of moves reach, as an integer flow of kinds of movers.

Searches below a cost that rises: only what can take part in a plan that cheap is in the program,
so the first ones are small, and one without a solution raises the bound for all plans. Capacity
holds in the final state; whether an order exists, and whether it takes detours, is looked at
afterwards, and a set of moves that cannot be carried out at its own cost is cut off and the search
goes on. Detours end in a final state as well and only add to its cost, so a bound found here holds
for plans with detours.
"""

from collections.abc import Iterator
from math import ceil
from typing import NamedTuple

import numpy as np

from rebalancer.planning.bounds import price_chains
from rebalancer.planning.cover import node_cover, whole_bound
from rebalancer.planning.flow_program import Flow, FlowProgram
from rebalancer.planning.homes import movers_with_home, split_by
from rebalancer.planning.neighbourhoods import NeighbourhoodSearch
from rebalancer.planning.ordering import OrderingLimitError
from rebalancer.planning.problem import INFINITE, FitProblem, Outcome, Solution
from rebalancer.planning.reduction import reduce
from rebalancer.planning.solver import solve

_FIRST_STEP = 0.05
"""The first search is below the known bound and this part of it; each one after it goes twice as
far, until one is too far to be answered; then half as far. Measured: see docs/decisions/solver.md.
"""

_WORK_SHARE = 0.2
"""Of the work that is left, what one search may use up; a guess. All of it one below the best plan
known, whose answer is the last one needed."""

_NEIGHBOURHOODS_SHARE = 0.3
"""Of the work that is left, for plans of a few nodes after each search that was not answered; a
guess."""

_LEAST_WORK = 0.1
"""Of the work limit; what is then left is too little for another search."""

_WORK_PER_TERM = 2e-6
"""Of a program, for stating it; measured: what CP-SAT does not count of large ones."""

_MAX_STATES = 20_000
"""Of a search for an order."""

_WORK_OF_ORDERING = 0.3
"""Of a search for an order that was given up; it takes a second and more."""

_MAX_WHOLE_BOUNDS = 200
"""Nodes for which one is worked out, which takes some 10 milliseconds; a guess."""

_MAX_CUTS = 25
"""Sets of moves without an order that one search cuts off before all is given up; a guess."""

OUT_OF_WORK = "the solver's time ran out"
TOO_MANY_CUTS = f"{_MAX_CUTS} sets of moves were found that cannot be carried out in any order"


class Progress(NamedTuple):
    """What is known by now, and what it took."""

    outcome: Outcome
    work: float


def search_flows(problem: FitProblem, known: Outcome, work_limit: float) -> Iterator[Progress]:
    """Improves on what is known; the last outcome is all that could be found.

    `work_limit`: in the solver's work, see there.
    """
    search = _FlowSearch(problem, known, work_limit)
    while search.goes_on():
        search.widen()
        yield Progress(search.outcome(), work_limit - search.work_left)


def solve_flow(problem: FitProblem, known: Outcome, work_limit: float) -> Outcome:
    """The last outcome of the search, in this process."""
    return [known, *(found for found, _ in search_flows(problem, known, work_limit))][-1]


class _FlowSearch:
    def __init__(self, problem: FitProblem, known: Outcome, work_limit: float) -> None:
        self.problem = problem
        self.best = known.solution
        self.work_left = work_limit
        self.lower = known.bound
        """No solution of the whole program costs less, those that are cut off apart."""
        self.unordered = INFINITE
        """No plan for a set of moves of which no order was found out costs less."""
        self.doubt = ""
        """Why one was not found out."""
        self.cuts: list[Flow] = []
        self.gave_up = ""
        has_home = movers_with_home(problem, problem.headroom)
        self.priced, self.landing_bounds = price_chains(problem, has_home)
        self.movers = split_by(problem.mover_node)
        self.in_whole = np.zeros(problem.node_count, np.bool_)
        """(n,) where the bound is that of whole movers."""
        dearest = int(problem.mover_cost.max() + problem.charge.max(initial=0))
        self.too_dear = dearest * problem.max_moves + 1
        """More than any plan of so many moves costs."""
        self.step: float = max(self.lower * _FIRST_STEP, int(problem.mover_cost.min()))
        self.neighbourhoods = NeighbourhoodSearch(problem)
        self.growth = 2
        self.least_work = work_limit * _LEAST_WORK

    @property
    def ceiling(self) -> int:
        """Only plans below are of interest."""
        return self.best.cost if self.best else self.too_dear

    def goes_on(self) -> bool:
        return self.lower < self.ceiling and not self.gave_up

    def outcome(self) -> Outcome:
        lower = INFINITE if self.best is None and self.lower >= self.too_dear else self.lower
        outcome = Outcome(self.best, min(lower, self.unordered)).normalised()
        if outcome.is_proven:
            return outcome
        return outcome._replace(gave_up_because=self.gave_up or self.doubt)

    def widen(self) -> None:
        """One search below a cost that is further above the bound, or less far if that failed."""
        cutoff = ceil(min(self.lower + self.step, self.ceiling))
        self._search_below(cutoff)
        if self.lower >= cutoff:
            self.step *= self.growth
        elif self.goes_on():
            self.growth = 1
            self._look_around()
            is_better = self.ceiling < cutoff
            self.step = self.ceiling - self.lower if is_better else (cutoff - self.lower) / 2
        if self.goes_on() and self.work_left < self.least_work:
            self.gave_up = OUT_OF_WORK

    def _look_around(self) -> None:
        """For a better plan, which also bounds what there is to be proven."""
        work_limit = self.work_left * _NEIGHBOURHOODS_SHARE
        plans = self.neighbourhoods.better_plans(self.landing_bounds, self.ceiling, work_limit)
        for plan, work in plans:
            self.best = plan or self.best
            self.work_left -= work

    def _search_below(self, cutoff: int) -> None:
        self._bound_landings(cutoff)
        part = reduce(self.problem, self.landing_bounds, cutoff)
        flows = FlowProgram(self.problem, part, self.landing_bounds)
        if not flows.lands or not flows.leaves:
            self.lower = cutoff
            return
        program = flows.program
        program.at_most(program.objective(), cutoff - 1)
        program.at_least(program.objective(), ceil(self.lower - 1e-6))
        for flow in self.cuts:
            flows.cut(flow)
        self.work_left -= sum(len(row.terms) for row in program.rows) * _WORK_PER_TERM
        settles_it = self.best is not None and cutoff == self.best.cost
        work_limit = self.work_left * (1 if settles_it else _WORK_SHARE)
        for _ in range(_MAX_CUTS):
            if work_limit <= 0:
                return
            answer = solve(program, work_limit)
            work_limit -= answer.work
            self.work_left -= answer.work
            self.lower = max(self.lower, min(answer.bound, cutoff))
            if answer.values is None:
                return
            flow = flows.read(answer.values)
            if self._carry_out(flow):
                return
            self.cuts.append(flow)
            flows.cut(flow)
        self.gave_up = TOO_MANY_CUTS

    def _bound_landings(self, cutoff: int) -> None:
        """Of the cheapest landings below the cutoff, what they cost at least in whole movers."""
        below = np.flatnonzero((self.landing_bounds < cutoff) & ~self.in_whole)
        left = max(0, _MAX_WHOLE_BOUNDS - self.in_whole.sum())
        for node in below[np.argsort(self.landing_bounds[below], kind="stable")][:left]:
            movers = self.movers[int(node)]
            cover = node_cover(self.priced, self.problem.kinds, int(node), movers)
            bound = whole_bound(cover, self.problem.max_moves)
            self.landing_bounds[node] = max(self.landing_bounds[node], bound)
            self.in_whole[node] = True

    def _carry_out(self, flow: Flow) -> bool:
        """Whether it can be carried out at its cost. If not, nothing more can be made of it."""
        try:
            moves = flow.in_order(self.problem, self.ceiling, _MAX_STATES)
        except OrderingLimitError as error:
            self.unordered = min(self.unordered, error.bound)
            self.doubt = str(error)
            self.work_left -= _WORK_OF_ORDERING
            return False
        if moves is None:
            return False
        self.best = Solution(flow.node, moves, self.problem.cost(moves))
        return self.best.cost <= flow.cost
