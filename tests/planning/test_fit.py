"""The two-stage planner against exhaustive search on small problems."""

from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rebalancer.planning.fit import solve_fit
from rebalancer.planning.flow import solve_flow
from rebalancer.planning.ordering import dependencies
from rebalancer.planning.problem import INFINITE, FitProblem, Outcome, Step
from rebalancer.scheduling.state import IntArray
from tests.planning.brute_force import cheapest


def second_stage(problem: FitProblem, known: Outcome) -> Outcome:
    """In this process: the problems are small."""
    return solve_flow(problem, known, work_limit=1)


@st.composite
def fit_problems(draw: st.DrawFn) -> FitProblem:
    """Up to four nodes and six movers, often tight, now and then over-committed; some movers ask
    for more than they give back.
    """
    n = draw(st.integers(2, 4))
    m = draw(st.integers(0, 6))
    k = draw(st.integers(1, 2))
    small = st.integers(0, 6)
    release = np.array(
        [[draw(st.integers(1, 6)), draw(st.integers(0, 2))] for _ in range(m)], np.int64
    ).reshape(m, 2)
    growth = np.array(
        [[max(0, draw(small) - 4), draw(small) // 6] for _ in range(m)], np.int64
    ).reshape(m, 2)
    return FitProblem(
        request=np.array([draw(st.integers(1, 10)), draw(st.integers(0, 3))], np.int64),
        landing=np.array([draw(st.integers(0, 3)) > 0 for _ in range(n)], np.bool_),
        headroom=np.array([[draw(st.integers(-1, 6)), draw(st.integers(-1, 4))] for _ in range(n)]),
        mover_node=np.array([draw(st.integers(0, n - 1)) for _ in range(m)], np.int64),
        mover_request=release + growth,
        mover_release=release,
        mover_cost=np.array([draw(st.integers(1, 9)) for _ in range(m)], np.int64),
        mover_class=np.array([draw(st.integers(0, k - 1)) for _ in range(m)], np.int64),
        allowed=np.array([[draw(small) > 0 for _ in range(n)] for _ in range(k)], np.bool_),
        charge=np.array([[max(0, draw(small) - 3) for _ in range(n)] for _ in range(k)], np.int64),
        max_moves=10,
    )


@st.composite
def crowded_problems(draw: st.DrawFn) -> FitProblem:
    """The item needs all of node 0, whose resident must leave, and hardly any other node has room:
    now and then movers can only pass each other over a detour.
    """
    n, m = draw(st.integers(3, 4)), draw(st.integers(3, 6))
    size = [[draw(st.integers(2, 5))] for _ in range(m)]
    headroom = [[draw(st.integers(2, 4))], *([draw(st.integers(0, 2))] for _ in range(n - 1))]
    return FitProblem(
        request=np.array([size[0][0] + headroom[0][0] - draw(st.integers(0, 2)) // 2], np.int64),
        landing=np.arange(n) == 0,
        headroom=np.array(headroom, np.int64),
        mover_node=np.array([0, *(draw(st.integers(1, n - 1)) for _ in range(m - 1))], np.int64),
        mover_request=np.array(size, np.int64),
        mover_release=np.array(size, np.int64),
        mover_cost=np.array([draw(st.integers(1, 9)) for _ in range(m)], np.int64),
        mover_class=np.arange(m),
        allowed=np.array([[draw(st.booleans()) for _ in range(n)] for _ in range(m)], np.bool_),
        charge=np.array([[3 * draw(st.integers(0, 1)) for _ in range(n)] for _ in range(m)]),
        max_moves=10,
    )


def _fits_before_any_move(problem: FitProblem) -> bool:
    return bool((problem.landing & problem.fits(problem.request, problem.headroom)).any())


@settings(max_examples=400, deadline=None)
@given(fit_problems() | crowded_problems())
def test_a_proven_plan_costs_what_exhaustive_search_finds(problem: FitProblem) -> None:
    if _fits_before_any_move(problem):
        return
    outcome = solve_fit(problem, second_stage)
    expected = cheapest(problem)
    if expected is None:
        assert outcome.solution is None
        return
    assert outcome.bound <= expected
    if outcome.solution is not None:
        assert outcome.solution.cost >= expected
        assert outcome.solution.cost == problem.cost(outcome.solution.moves)
    if outcome.is_proven:
        assert outcome.solution is not None
        assert outcome.solution.cost == expected


@settings(max_examples=400, deadline=None)
@given(fit_problems() | crowded_problems(), st.randoms(use_true_random=False))
def test_no_node_is_overfilled_however_long_each_move_takes(
    problem: FitProblem, random: Random
) -> None:
    if _fits_before_any_move(problem):
        return
    solution = solve_fit(problem, second_stage).solution
    if solution is None:
        return
    steps = problem.steps(solution.moves)
    waits = dependencies(problem, solution.moves)
    headroom = problem.headroom.copy()
    started: set[int] = set()
    ended: set[int] = set()
    while len(ended) < len(steps):
        _start_all_that_may(problem, steps, waits, started, ended, headroom)
        assert started > ended, "every move left waits for another"
        move = random.choice(sorted(started - ended))
        headroom[steps[move].source] += steps[move].release
        ended.add(move)
    assert problem.fits(problem.request, headroom[solution.node])


def _start_all_that_may(
    problem: FitProblem,
    steps: list[Step],
    waits: tuple[tuple[int, ...], ...],
    started: set[int],
    ended: set[int],
    headroom: IntArray,
) -> None:
    on_the_way = {steps[index].mover for index in started - ended}
    for index, step in enumerate(steps):
        if index not in started and ended.issuperset(waits[index]):
            request = problem.mover_request[step.mover]
            assert step.mover not in on_the_way, "started while the move before is under way"
            assert problem.fits(request, headroom[step.target]), "started without room"
            headroom[step.target] -= request
            started.add(index)


def test_a_chain_of_two_moves_is_found_and_ordered() -> None:
    """The first mover's only other node has room for it once the second has left."""
    problem = FitProblem(
        request=np.array([8]),
        landing=np.array([True, False, False]),
        headroom=np.array([[0], [0], [4]]),
        mover_node=np.array([0, 1]),
        mover_request=np.array([[8], [4]]),
        mover_release=np.array([[8], [4]]),
        mover_cost=np.array([8, 4]),
        mover_class=np.array([0, 1]),
        allowed=np.array([[True, True, False], [True, False, True]]),
        charge=np.zeros((2, 3), np.int64),
        max_moves=10,
    )
    outcome = solve_fit(replace(problem, headroom=np.array([[0], [4], [4]])), second_stage)
    assert outcome.solution is not None
    assert outcome.solution.moves == ((1, 2), (0, 1))
    assert outcome.is_proven
    assert dependencies(
        replace(problem, headroom=np.array([[0], [4], [4]])), outcome.solution.moves
    ) == ((), (0,))


def test_without_any_home_for_any_mover_nothing_can_start() -> None:
    problem = FitProblem(
        request=np.array([8]),
        landing=np.array([True, True]),
        headroom=np.array([[4], [3]]),
        mover_node=np.array([0, 1]),
        mover_request=np.array([[4], [5]]),
        mover_release=np.array([[4], [5]]),
        mover_cost=np.array([1, 1]),
        mover_class=np.array([0, 0]),
        allowed=np.ones((1, 2), np.bool_),
        charge=np.zeros((1, 2), np.int64),
        max_moves=10,
    )
    outcome = solve_fit(problem, second_stage)
    assert outcome.solution is None
    assert outcome.bound == INFINITE


def test_a_cheap_mover_that_only_others_make_a_home_for_is_not_overlooked() -> None:
    """The cheapest plan puts the small mover where the item is to land, beside the item; on the
    last two nodes a dearer plan is to be had without any chain.
    """
    size = np.array([[4], [4], [3], [4]])
    problem = FitProblem(
        request=np.array([5]),
        landing=np.array([True, False, False, True, False]),
        headroom=np.array([[0], [1], [4], [1], [4]]),
        mover_node=np.array([0, 0, 1, 3]),
        mover_request=size,
        mover_release=size,
        mover_cost=np.array([5, 5, 1, 12]),
        mover_class=np.array([0, 0, 1, 2]),
        allowed=np.array([[1, 1, 1, 0, 0], [1, 1, 0, 0, 0], [0, 0, 0, 1, 1]], np.bool_),
        charge=np.zeros((3, 5), np.int64),
        max_moves=10,
    )
    outcome = solve_fit(problem, second_stage)
    assert outcome.solution is not None
    assert outcome.solution.cost == cheapest(problem) == 11
    assert outcome.is_proven


def test_two_cheap_movers_are_found_although_one_dear_mover_gives_as_much() -> None:
    """On the first node one that is dearer than both; on the second the two small ones."""
    size = np.array([[2], [2], [4], [4]])
    problem = FitProblem(
        request=np.array([6]),
        landing=np.array([True, True, False]),
        headroom=np.array([[2], [2], [4]]),
        mover_node=np.array([1, 1, 1, 0]),
        mover_request=size,
        mover_release=size,
        mover_cost=np.array([1, 1, 100, 50]),
        mover_class=np.zeros(4, np.int64),
        allowed=np.array([[False, False, True]]),
        charge=np.zeros((1, 3), np.int64),
        max_moves=10,
    )
    outcome = solve_fit(problem, second_stage)
    assert outcome.solution is not None
    assert outcome.solution.cost == cheapest(problem) == 2
    assert outcome.is_proven
