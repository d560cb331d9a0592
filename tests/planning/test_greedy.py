"""A plan that is made without looking back."""

import numpy as np

from rebalancer.planning.bounds import price_chains
from rebalancer.planning.greedy import greedy_plan
from rebalancer.planning.homes import movers_with_home, split_by
from rebalancer.planning.problem import FitProblem, Solution


def problem(*movers: tuple[int, int, int], headroom: tuple[int, ...], request: int) -> FitProblem:
    """The item may go to the first two nodes; movers are (node, size, cost)."""
    nodes, sizes, costs = (np.array(column) for column in zip(*movers, strict=True))
    return FitProblem(
        request=np.array([request]),
        landing=np.arange(len(headroom)) < 2,
        headroom=np.array(headroom).reshape(-1, 1),
        mover_node=nodes,
        mover_request=sizes.reshape(-1, 1),
        mover_release=sizes.reshape(-1, 1),
        mover_cost=costs,
        mover_class=np.zeros(len(movers), np.int64),
        allowed=np.ones((1, len(headroom)), np.bool_),
        charge=np.zeros((1, len(headroom)), np.int64),
        max_moves=2,
    )


def plan(made: FitProblem) -> Solution | None:
    has_home = movers_with_home(made, made.headroom)
    _, bounds = price_chains(made, has_home)
    return greedy_plan(made, has_home, split_by(made.mover_node), bounds)


def test_the_node_is_taken_where_room_costs_less() -> None:
    made = problem((0, 4, 9), (1, 4, 5), headroom=(2, 2, 8), request=6)
    assert plan(made) == Solution(1, ((1, 2),), 5)


def test_a_mover_that_later_ones_make_up_for_stays() -> None:
    """The small one gives most for its cost, and is of no use beside the large one."""
    made = problem((0, 1, 1), (0, 4, 8), headroom=(0, -9, 8), request=4)
    assert plan(made) == Solution(0, ((1, 2),), 8)


def test_where_the_cheapest_node_cannot_be_cleared_the_next_one_is() -> None:
    """Both movers of the first node have a home, and it is the same one."""
    made = problem((0, 4, 1), (0, 4, 1), (1, 3, 9), headroom=(0, 3, 4), request=6)
    assert plan(made) == Solution(1, ((2, 2),), 9)


def test_more_moves_than_allowed_are_no_plan() -> None:
    made = problem(*[(0, 1, 1)] * 3, headroom=(0, -9, 8), request=3)
    assert plan(made) is None
