"""Plans that only a few nodes take part in: a fit problem so small that it is answered at once.

Where hardly anything has room, good plans exchange movers between nodes that are short of different
things. Many small searches of some such nodes find them long before one search of all does.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from rebalancer.planning.bounds import FloatArray
from rebalancer.planning.flow_program import FlowProgram
from rebalancer.planning.ordering import OrderingLimitError
from rebalancer.planning.problem import FitProblem, Solution
from rebalancer.planning.reduction import Reduction
from rebalancer.planning.solver import solve
from rebalancer.scheduling.state import IntArray

_SIZES = range(4, 7)
"""Nodes of one neighbourhood. Measured: with fewer there are too few plans, with more each search
takes too long."""

_ROOMY_SHARE = 0.7
"""Of the nodes that are drawn among those with most room, the others being drawn among all; a
guess."""

_WORK_OF_A_SEARCH = 0.002
"""That CP-SAT does not count: building the program and starting, 3 to 6 milliseconds."""

_WORK_OF_ORDERING = 0.03
"""Of a search for an order that was given up."""

_MOST_WORK_OF_A_SEARCH = 0.05
_MAX_STATES = 500
"""Of a search for an order, less than a second."""


class Neighbourhood(NamedTuple):
    """Some nodes, and the movers that are on them."""

    nodes: IntArray
    movers: IntArray
    problem: FitProblem
    """As if there were nothing else."""


def among(problem: FitProblem, nodes: IntArray) -> Neighbourhood:
    """`nodes`: ascending."""
    movers = np.flatnonzero(np.isin(problem.mover_node, nodes))
    return Neighbourhood(
        nodes,
        movers,
        replace(
            problem,
            headroom=problem.headroom[nodes],
            landing=problem.landing[nodes],
            mover_node=np.searchsorted(nodes, problem.mover_node[movers]),
            mover_request=problem.mover_request[movers],
            mover_release=problem.mover_release[movers],
            mover_cost=problem.mover_cost[movers],
            mover_class=problem.mover_class[movers],
            allowed=problem.allowed[:, nodes],
            charge=problem.charge[:, nodes],
        ),
    )


class NeighbourhoodSearch:
    """Draws neighbourhoods, always the same ones in the same order for equal problems."""

    def __init__(self, problem: FitProblem) -> None:
        self._problem = problem
        self._random = np.random.default_rng(0)
        self._room = np.maximum(problem.headroom, 0)
        lacks = (problem.request - problem.headroom)[problem.landing] > 0
        self._short = np.flatnonzero(lacks.any(axis=0))
        few = 2 * int(np.sqrt(problem.node_count)) + 2
        self._roomy = np.argsort(-problem.headroom, axis=0, kind="stable")[:few].T

    def better_plans(
        self, landing_bounds: FloatArray, ceiling: float, work_limit: float
    ) -> Iterator[tuple[Solution | None, float]]:
        """The plan that each neighbourhood has below the cost of all before, if any, and the work
        that it took.

        `landing_bounds`: (n,) no plan that lands the item on the node costs less.
        """
        while work_limit > 0:
            landings = np.flatnonzero(landing_bounds < ceiling)
            if not len(landings):
                return
            nodes = self._drawn(landings[np.argsort(landing_bounds[landings], kind="stable")])
            solution, work = _search(among(self._problem, nodes), landing_bounds[nodes], ceiling)
            if solution is not None:
                ceiling = solution.cost
            work_limit -= work
            yield solution, work

    def _drawn(self, landings: IntArray) -> IntArray:
        """One of the landings, and others around it: enough to have room for the item together."""
        nodes = [self._early(landings)]
        size = min(int(self._random.choice(_SIZES)), self._problem.node_count)
        while len(nodes) < size:
            lacking = np.flatnonzero(self._room[nodes].sum(axis=0) < self._problem.request)
            if len(lacking):
                node = self._early(self._roomy[int(lacking[0])])
            elif self._random.random() < _ROOMY_SHARE:
                node = self._early(self._roomy[int(self._random.choice(self._short))])
            else:
                node = int(self._random.integers(self._problem.node_count))
            if node not in nodes:
                nodes.append(node)
        return np.array(sorted(nodes), np.int64)

    def _early(self, nodes: IntArray) -> int:
        """One of them, those early in the list rather than others."""
        weights = 1 / np.sqrt(np.arange(1, len(nodes) + 1))
        return int(self._random.choice(nodes, p=weights / weights.sum()))


def _search(
    part: Neighbourhood, landing_bounds: FloatArray, ceiling: float
) -> tuple[Solution | None, float]:
    problem, work = part.problem, _WORK_OF_A_SEARCH
    if not len(part.movers):
        return None, work
    everything = Reduction(
        landing=landing_bounds < ceiling,
        leaves=problem.mover_cost < ceiling,
        arrives=problem.allowed[problem.mover_class[problem.examples]],
    )
    flows = FlowProgram(problem, everything, landing_bounds)
    if not flows.leaves:
        return None, work
    flows.program.at_most(flows.program.objective(), int(np.ceil(ceiling)) - 1)
    while work < _MOST_WORK_OF_A_SEARCH:
        answer = solve(flows.program, _MOST_WORK_OF_A_SEARCH - work)
        work += answer.work
        if answer.values is None:
            break
        flow = flows.read(answer.values)
        try:
            moves = flow.in_order(problem, ceiling, _MAX_STATES)
        except OrderingLimitError:
            moves = None
            work += _WORK_OF_ORDERING
        if moves is not None:
            cost = problem.cost(moves)
            there = tuple((int(part.movers[i]), int(part.nodes[j])) for i, j in moves)
            return Solution(int(part.nodes[flow.node]), there, cost), work
        flows.cut(flow)
    return None, work
