"""What movers cost that leave one node and are in each other's way."""

import numpy as np

from rebalancer.planning.crowding import Crowding
from rebalancer.planning.problem import INFINITE
from tests.planning.test_detours import crowded


def test_the_cheapest_of_all_ways_to_share_out_the_movers_counts() -> None:
    # Both on node 1 lack 2, for which its mover of cost 9 leaves; one on node 2 lacks 1, which
    # costs 7 in the whole mover and so at least 7.
    problem = crowded(
        8, [0, 6, 3, 9], (0, 4, [1, 2]), (0, 4, [1, 2]), (1, 2, [3]), (2, 4, [3]), cost={2: 9, 3: 7}
    )
    assert Crowding(problem).bound([0, 1]) == 7


def test_movers_that_may_go_nowhere_cannot_be_given_room() -> None:
    problem = crowded(8, [0, 4, 4], (0, 4, []), (0, 4, []), (1, 2, [2]))
    assert Crowding(problem).bound([0, 1]) == INFINITE


def test_of_many_movers_only_the_cheapest_move_of_another_is_counted() -> None:
    sizes = [(0, size, [1]) for size in range(1, 8)]
    problem = crowded(28, [0, 20, 9], *sizes, (1, 5, [2]), cost={7: 3})
    assert Crowding(problem).bound(list(np.arange(7))) == 1
