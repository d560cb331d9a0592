"""Movers that are in each other's way: one steps aside where that is the only or cheapest way."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pytest
from msgspec.structs import replace

from rebalancer.planning import flow
from rebalancer.planning.fit import solve_fit
from rebalancer.planning.flow import solve_flow
from rebalancer.planning.ordering import OrderingLimitError, dependencies, find_order
from rebalancer.planning.problem import FitProblem, Moves, Outcome
from tests.planning.brute_force import cheapest

Mover = tuple[int, int, Sequence[int]]
"""Node, size and the nodes that it may go to."""


def solve(problem: FitProblem) -> Outcome:
    return solve_fit(problem, partial(solve_flow, work_limit=1))


def crowded(
    request: int,
    room: Sequence[int],
    *movers: Mover,
    cost: Mapping[int, int] | None = None,
    max_moves: int = 10,
) -> FitProblem:
    """The item needs that much of node 0; a mover costs its size unless it is told otherwise."""
    size = np.array([[size] for _, size, _ in movers])
    costs = [(cost or {}).get(mover, int(size[mover, 0])) for mover in range(len(movers))]
    return FitProblem(
        request=np.array([request]),
        landing=np.arange(len(room)) == 0,
        headroom=np.array([[each] for each in room]),
        mover_node=np.array([node for node, _, _ in movers]),
        mover_request=size,
        mover_release=size,
        mover_cost=np.array(costs),
        mover_class=np.arange(len(movers)),
        allowed=np.array([[node in to for node in range(len(room))] for _, _, to in movers]),
        charge=np.zeros((len(movers), len(room)), np.int64),
        max_moves=max_moves,
    )


def swap() -> FitProblem:
    """Mover 0 must leave for node 1, which has room for it once movers 1 and 2 have changed
    places; mover 2 can let mover 1 pass on node 0.
    """
    return crowded(4, [2, 1, 2], (0, 2, [1]), (1, 3, [2]), (2, 2, [0, 1]))


def solved(problem: FitProblem) -> Outcome:
    outcome = solve(problem)
    assert outcome.is_proven
    assert (outcome.solution.cost if outcome.solution else None) == cheapest(problem)
    return outcome


def moves_of(problem: FitProblem) -> Moves:
    solution = solved(problem).solution
    assert solution is not None
    return solution.moves


def test_two_movers_change_places_over_the_landing_node_before_the_item_arrives() -> None:
    moves = moves_of(swap())
    assert moves == ((2, 0), (1, 2), (0, 1), (2, 1))
    assert dependencies(swap(), moves) == ((), (0,), (1,), (0, 1))


def test_both_moves_of_a_detour_are_paid_for() -> None:
    solution = solved(swap()).solution
    assert solution is not None
    assert solution.cost == 2 + 3 + 2 + 2


def test_three_movers_change_places_in_a_circle() -> None:
    circle = (1, 3, [2]), (2, 3, [3]), (3, 2, [0, 1])
    moves = moves_of(crowded(3, [2, 0, 0, 1], (0, 1, [1]), *circle))
    assert [mover for mover, _ in moves].count(3) == 2
    assert len(moves) == 5


def test_an_empty_node_is_moved_to_for_good_and_no_detour_made() -> None:
    movers = (0, 4, [1]), (1, 4, [2]), (2, 4, [1, 3])
    moves = moves_of(crowded(4, [0, 0, 0, 4], *movers))
    assert moves == ((2, 3), (1, 2), (0, 1))


@pytest.mark.parametrize(("costs", "aside"), [({1: 1, 2: 5}, 1), ({1: 5, 2: 1}, 2)])
def test_of_two_that_could_step_aside_the_cheaper_one_does(
    costs: Mapping[int, int], aside: int
) -> None:
    movers = (0, 2, [1]), (1, 3, [0, 2]), (2, 2, [0, 1])
    moves = moves_of(crowded(5, [3, 1, 1], *movers, cost=costs))
    assert sorted(mover for mover, _ in moves) == sorted([0, 1, 2, aside])


@pytest.mark.parametrize(("cost", "is_detour"), [(8, False), (10, True)])
def test_a_detour_is_made_where_all_its_moves_cost_less_than_another_vm_that_leaves(
    cost: int, *, is_detour: bool
) -> None:
    """The detour costs 9; mover 3 could make room by itself."""
    movers = (0, 2, [1]), (1, 3, [2]), (2, 2, [0, 1]), (0, 2, [3])
    moves = moves_of(crowded(4, [2, 1, 2, 2], *movers, cost={3: cost}))
    assert (len(moves) == 4) == is_detour


def test_a_plan_of_more_moves_than_allowed_is_none() -> None:
    assert solve(replace(swap(), max_moves=4)).solution is not None
    outcome = solve(replace(swap(), max_moves=3))
    assert outcome.solution is None
    assert outcome.is_proven


def test_a_search_that_is_given_up_leaves_the_plan_unproven(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(flow, "_MAX_STATES", 2)
    outcome = solve(swap())
    assert not outcome.is_proven
    assert outcome.bound <= 9
    assert outcome.gave_up_because == "the search for an order of the moves was too long"


def test_a_search_that_is_given_up_tells_what_an_order_costs_at_least() -> None:
    slots = Counter({(0, 1): 1, (1, 2): 1, (2, 1): 1})
    with pytest.raises(OrderingLimitError) as error:
        find_order(swap(), [0, 1, 2], slots, landing=0, cost_limit=100, max_states=2)
    assert 7 <= error.value.bound <= 9
