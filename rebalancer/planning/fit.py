"""The fit problem in two stages: direct search, then a flow model for what it leaves open."""

import numpy as np

from rebalancer.planning.bounds import clearing_bounds
from rebalancer.planning.flow import solve_flow
from rebalancer.planning.problem import FitProblem, Outcome
from rebalancer.planning.search import search_direct
from rebalancer.scheduling.state import IntArray

_MAX_FLOW_NODES = 300
"""Up to here the flow model takes in all nodes and can prove; above, only the best of them."""


def solve_fit(problem: FitProblem, work_limit: float) -> Outcome:
    """The cheapest executable plan, or as much as is known about it.

    `work_limit`: about seconds on one core; counted in work, so that equal problems give equal
    outcomes.
    """
    outcome = search_direct(problem)
    if outcome.is_proven:
        return outcome
    nodes, is_whole = _neighbourhood(problem)
    return solve_flow(problem, nodes, outcome, work_limit, is_whole=is_whole)


def _neighbourhood(problem: FitProblem) -> tuple[IntArray, bool]:
    """All nodes, or the cheapest to clear and the emptiest ones, in node order."""
    if problem.node_count <= _MAX_FLOW_NODES:
        return np.arange(problem.node_count), True
    bounds = clearing_bounds(problem, np.ones(problem.mover_count, np.bool_))
    cheapest = np.argsort(bounds, kind="stable")[: _MAX_FLOW_NODES // 3]
    share = problem.headroom / np.maximum(problem.headroom.max(axis=0), 1)
    emptiest = np.argsort(-share.sum(axis=1), kind="stable")
    others = emptiest[~np.isin(emptiest, cheapest)][: _MAX_FLOW_NODES - len(cheapest)]
    return np.sort(np.concatenate([cheapest, others])), False
