"""Lower bounds are below whatever is possible."""

from functools import partial
from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rebalancer.planning.bounds import clearing_bounds
from rebalancer.planning.fit import solve_fit
from rebalancer.planning.flow import solve_flow
from rebalancer.planning.problem import FitProblem


def test_one_dear_mover_that_gives_enough_does_not_hide_two_cheap_ones() -> None:
    """Of node 1 two movers that cost 5 together can leave, or one that costs 6 by itself."""
    size = np.array([[2, 1], [1, 2], [2, 2], [3, 0], [6, 2], [2, 0]])
    problem = FitProblem(
        request=np.array([6, 2]),
        landing=np.array([True, True]),
        headroom=np.array([[4, 2], [3, 1]]),
        mover_node=np.array([1, 1, 1, 0, 1, 1]),
        mover_request=size,
        mover_release=size,
        mover_cost=np.array([2, 1, 8, 7, 6, 4]),
        mover_class=np.zeros(6, np.int64),
        allowed=np.ones((1, 2), np.bool_),
        charge=np.zeros((1, 2), np.int64),
        max_moves=10,
    )
    outcome = solve_fit(problem, partial(solve_flow, work_limit=1))
    assert outcome.solution is not None
    assert outcome.solution.cost == 5
    assert outcome.is_proven


@settings(max_examples=100, deadline=None)
@given(
    movers=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 20)), min_size=1, max_size=6),
    request=st.integers(1, 20),
)
def test_no_set_whose_leaving_makes_room_costs_less_than_the_bound(
    movers: list[tuple[int, int]], request: int
) -> None:
    size = np.array([[size] for size, _ in movers])
    cost = np.array([cost for _, cost in movers])
    problem = FitProblem(
        request=np.array([request]),
        landing=np.array([True]),
        headroom=np.array([[0]]),
        mover_node=np.zeros(len(movers), np.int64),
        mover_request=size,
        mover_release=size,
        mover_cost=cost,
        mover_class=np.zeros(len(movers), np.int64),
        allowed=np.ones((1, 1), np.bool_),
        charge=np.zeros((1, 1), np.int64),
        max_moves=10,
    )
    subsets = (list(s) for n in range(len(movers) + 1) for s in combinations(range(len(movers)), n))
    enough = [int(cost[s].sum()) for s in subsets if size[s].sum() >= request]
    (bound,) = clearing_bounds(problem, np.ones(len(movers), np.bool_))
    assert bound <= min(enough, default=np.inf)
