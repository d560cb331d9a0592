"""What the first stage makes of movers that have no home as things are."""

import numpy as np

from benchmarks.replay import replay
from rebalancer.planning.problem import FitProblem, Outcome, Solution
from rebalancer.planning.search import search_direct

ITEM = 10
OLD, STEPPING_STONE, SPARE = range(3)


def _problem(headroom: tuple[int, ...], movers: tuple[tuple[int, int, int], ...]) -> FitProblem:
    """One resource, all nodes open to all movers, (node, size, cost); the item may only land on
    the first node.
    """
    node, size, cost = map(np.array, zip(*movers, strict=True))
    nodes = len(headroom)
    return FitProblem(
        request=np.array([ITEM]),
        landing=np.arange(nodes) == OLD,
        headroom=np.array(headroom)[:, None],
        mover_node=node,
        mover_request=size[:, None],
        mover_release=size[:, None],
        mover_cost=cost,
        mover_class=np.zeros(len(node), np.int64),
        allowed=np.ones((1, nodes), np.bool_),
        charge=np.zeros((1, nodes), np.int64),
        max_moves=10,
    )


def test_a_mover_without_a_home_goes_where_another_makes_room_for_it() -> None:
    problem = _problem((4, 3, 3), ((OLD, 6, 5), (STEPPING_STONE, 3, 2)))
    outcome = search_direct(problem)
    assert outcome == Outcome(Solution(OLD, ((1, SPARE), (0, STEPPING_STONE)), 7), 7)
    replay(problem, ((1, SPARE), (0, STEPPING_STONE)), OLD)


def test_a_home_that_costs_more_than_the_best_plan_closes_the_search() -> None:
    # Without its home the mover of 8 would be the cheaper one to leave.
    problem = _problem((4, 3, 7), ((OLD, 8, 1), (OLD, 7, 20), (STEPPING_STONE, 5, 30)))
    outcome = search_direct(problem)
    assert outcome == Outcome(Solution(OLD, ((1, SPARE),), 20), 20)


def test_two_that_would_have_to_change_places_are_left_to_the_second_stage() -> None:
    problem = _problem((4, 0), ((OLD, 6, 5), (STEPPING_STONE, 6, 2)))
    assert search_direct(problem).solution is None


def test_homes_that_are_in_each_others_way_make_no_plan() -> None:
    # Each of the two could go where the third leaves, but not both.
    movers = ((OLD, 4, 5), (OLD, 4, 5), (STEPPING_STONE, 2, 2))
    problem = _problem((2, 2, 2), movers)
    outcome = search_direct(problem)
    assert outcome.solution is None
    assert outcome.bound >= 12
