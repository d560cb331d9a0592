"""Best fit moves what finds room there and then, and nobody else."""

import numpy as np

from benchmarks.drain import best_fit
from tests.planning.spread_problems import spread_problem


def test_best_fit_puts_the_largest_first_on_the_node_that_it_fills_most() -> None:
    problem = spread_problem(
        capacity=[100, 100, 100],
        movers=[(0, 10), (0, 30), (0, 40)],
        immovable=[0, 65, 70],
    )
    moves = best_fit(problem, source=0)
    assert moves == ((1, 2), (0, 1))
    assert np.array_equal(problem.after(moves).headroom, [[60], [25], [0]])
