"""What the first stage makes of movers that have no home as things are."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.replay import replay
from rebalancer.planning.problem import INFINITE, FitProblem, Outcome, Solution
from rebalancer.planning.search import search_direct
from tests.planning.brute_force import cheapest
from tests.planning.test_detours import crowded

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


def test_a_home_is_made_over_as_many_nodes_as_it_takes() -> None:
    # 6 goes where 4 leaves, 4 where 2 leaves, and 2 where there is room.
    movers = ((OLD, 6, 5), (1, 4, 3), (2, 2, 1))
    problem = _problem((4, 2, 2, 2), movers)
    outcome = search_direct(problem)
    assert outcome == Outcome(Solution(OLD, ((2, 3), (1, 2), (0, 1)), 9), 9)
    replay(problem, ((2, 3), (1, 2), (0, 1)), OLD)


def test_one_of_two_that_have_the_same_home_goes_where_another_makes_room() -> None:
    # Either of the two could take the room of 4, and not both.
    movers = ((OLD, 4, 5), (OLD, 4, 6), (2, 3, 2))
    problem = _problem((2, 4, 1, 3), movers)
    outcome = search_direct(problem)
    assert outcome.is_proven
    assert outcome.solution is not None
    assert outcome.solution.cost == 13
    replay(problem, outcome.solution.moves, OLD)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_no_plan_is_cheaper_than_the_bound(data: st.DataObject) -> None:
    nodes, movers = data.draw(st.integers(3, 4)), data.draw(st.integers(2, 5))
    headroom = data.draw(st.tuples(*[st.integers(0, 5)] * nodes))
    # Several are on the node that must be cleared.
    places = [OLD, OLD, *data.draw(st.tuples(*[st.integers(0, nodes - 1)] * (movers - 2)))]
    sizes = data.draw(st.tuples(*[st.integers(1, 6)] * movers))
    costs = data.draw(st.tuples(*[st.integers(1, 9)] * movers))
    problem = _problem(headroom, tuple(zip(places, sizes, costs, strict=True)))
    outcome = search_direct(problem)
    expected = cheapest(problem)
    assert outcome.bound <= (INFINITE if expected is None else expected)
    if outcome.solution is not None:
        replay(problem, outcome.solution.moves, outcome.solution.node)


def test_a_mover_for_which_nobody_can_make_room_proves_that_there_is_no_plan() -> None:
    problem = _problem((4, 1, 1), ((OLD, 6, 5), (1, 1, 1)))
    assert search_direct(problem) == Outcome(None, INFINITE)


def test_another_that_leaves_as_well_lets_somebody_in_who_makes_room() -> None:
    # 0 goes where 2 is, 2 only to the node that they leave, and there is room for it, and for the
    # item, once 1 has left too.
    movers = (0, 6, [1]), (0, 4, [2]), (1, 4, [0])
    problem = crowded(10, [4, 2, 4], *movers, cost={0: 5, 1: 1, 2: 3})
    outcome = search_direct(problem)
    assert outcome == Outcome(Solution(0, ((1, 2), (2, 0), (0, 1)), 9), 9)
    replay(problem, ((1, 2), (2, 0), (0, 1)), 0)
