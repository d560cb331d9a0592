"""What the first stage leaves open and the second proves; the figures are regression values."""

import pytest

from rebalancer.planning.flow import solve_flow
from rebalancer.planning.problem import INFINITE
from rebalancer.planning.search import search_direct
from tests.planning.hard_problems import full_cluster


@pytest.mark.parametrize(
    ("seed", "nodes", "holes", "cost", "moves"),
    [
        (5, 16, 0.05, 795, 8),
        (7, 6, 0.01, 797, 5),
        (8, 6, 0.05, 555, 7),
        (10, 16, 0.05, 1638, 10),
        (11, 6, 0.01, 1072, 10),
        (13, 16, 0.05, 1790, 9),
    ],
)
def test_the_cheapest_plan_is_proven(
    seed: int, nodes: int, holes: float, cost: int, moves: int
) -> None:
    problem = full_cluster(seed, nodes, holes)
    known = search_direct(problem)
    assert not known.is_proven
    outcome = solve_flow(problem, known, work_limit=1)
    assert outcome.is_proven
    assert outcome.solution is not None
    assert outcome.solution.cost == cost
    assert len(outcome.solution.moves) <= moves


@pytest.mark.parametrize(
    ("seed", "nodes", "holes"),
    [(1, 6, 0.01), (6, 16, 0.05), (11, 6, 0.05), (14, 6, 0.01), (16, 6, 0.01), (16, 6, 0.05)],
)
def test_that_there_is_no_plan_is_proven(seed: int, nodes: int, holes: float) -> None:
    problem = full_cluster(seed, nodes, holes)
    known = search_direct(problem)
    assert not known.is_proven
    outcome = solve_flow(problem, known, work_limit=1)
    assert outcome.solution is None
    assert outcome.bound == INFINITE
