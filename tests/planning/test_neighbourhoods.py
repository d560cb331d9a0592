"""Plans that only a few nodes take part in."""

import numpy as np

from benchmarks.replay import replay
from rebalancer.planning.neighbourhoods import NeighbourhoodSearch, among
from rebalancer.planning.problem import FitProblem, Solution
from tests.planning.hard_problems import full_cluster
from tests.planning.test_detours import crowded


def _plans(problem: FitProblem, work: float) -> list[Solution]:
    bounds = np.where(problem.landing, 1.0, np.inf)
    search = NeighbourhoodSearch(problem)
    return [plan for plan, _ in search.better_plans(bounds, 10_000, work) if plan]


def test_each_plan_is_cheaper_than_the_one_before_and_can_be_carried_out() -> None:
    problem = full_cluster(16, 16, 0.01)
    plans = _plans(problem, 0.2)
    costs = [plan.cost for plan in plans]
    assert len(plans) > 1
    assert costs == sorted(set(costs), reverse=True)
    for plan in plans:
        replay(problem, plan.moves, plan.node)
        assert problem.cost(plan.moves) == plan.cost


def test_equal_problems_get_equal_plans() -> None:
    first, second = (_plans(full_cluster(10, 16, 0.05), 0.2) for _ in range(2))
    assert first == second


def test_movers_that_change_places_are_found_among_many_other_nodes() -> None:
    movers = (0, 2, [1]), (1, 3, [2]), (2, 2, [0, 1])
    problem = crowded(4, [2, 1, 2, *[0] * 20], *movers)
    [plan] = _plans(problem, 0.4)
    assert plan.cost == 9
    replay(problem, plan.moves, plan.node)


def test_a_part_has_just_the_movers_that_are_on_its_nodes() -> None:
    problem = crowded(4, [2, 1, 2], (0, 2, [1]), (1, 3, [2]), (2, 2, [0, 1]))
    part = among(problem, np.array([0, 2]))
    assert part.movers.tolist() == [0, 2]
    assert part.problem.mover_node.tolist() == [0, 1]
    assert part.problem.headroom.tolist() == [[2], [2]]
    assert part.problem.allowed.tolist() == [[False, False], [False, True], [True, False]]


def test_a_problem_that_lands_nowhere_below_the_cost_is_not_searched() -> None:
    problem = crowded(4, [2, 1], (0, 2, [1]))
    bounds = np.array([5.0, np.inf])
    assert list(NeighbourhoodSearch(problem).better_plans(bounds, 5, 1.0)) == []
