"""Lower bounds are below whatever is possible."""

import numpy as np

from rebalancer.planning.fit import solve_fit
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
    outcome = solve_fit(problem, work_limit=5)
    assert outcome.solution is not None
    assert outcome.solution.cost == 5
    assert outcome.is_proven
