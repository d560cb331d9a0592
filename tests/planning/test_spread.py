"""Plans that even out load keep to the rules, and stop when it is even enough."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebalancer.planning.spread import even_out, least_measure
from rebalancer.planning.spread_problem import Measure, SpreadProblem
from tests.planning.spread_problems import (
    check_plan,
    spread_problem,
    spread_problems,
    with_limit,
)

GIB = 2**30
MB = 10**6

MEASURES = list(Measure)


@pytest.mark.parametrize("measure", MEASURES)
def test_r35_nodes_as_even_as_their_vms_allow_are_left_alone(measure: Measure) -> None:
    """gyptazy/ProxLB#128: 3 nodes of 100Gi at 74/72/70 %, every VM 8Gi."""
    problem = spread_problem(
        capacity=[100 * GIB] * 3,
        movers=[(node, 8 * GIB) for node in range(3) for _ in range(8)],
        immovable=[10 * GIB, 8 * GIB, 6 * GIB],
        measure=measure,
    )
    evened = even_out(problem)
    assert evened.moves == ()
    assert evened.after == evened.before


@pytest.mark.parametrize("measure", MEASURES)
def test_r36_nothing_above_allocatable_at_any_step(measure: Measure) -> None:
    """gyptazy/ProxLB#378: 5 nodes of 58750M with 36/30/12/46/50 GB, one VM of 24GB on the last."""
    problem = spread_problem(
        capacity=[58_750 * MB] * 5,
        movers=[
            *(
                (node, 6_000 * MB)
                for node, count in enumerate([6, 5, 2, 7, 4])
                for _ in range(count)
            ),
            (4, 24_000 * MB),
        ],
        immovable=[0, 0, 0, 4_000 * MB, 2_000 * MB],
        measure=measure,
    )
    evened = even_out(problem)
    check_plan(problem, evened.moves)
    assert evened.after < evened.before
    assert (problem.after(evened.moves).headroom >= 0).all()


@pytest.mark.parametrize("measure", MEASURES)
def test_vms_leave_the_full_node_for_the_empty_one(measure: Measure) -> None:
    problem = spread_problem(capacity=[100, 100], movers=[(0, 20)] * 4, measure=measure)
    evened = even_out(problem)
    assert [target for _, target in evened.moves] == [1, 1]
    assert problem.after(evened.moves).load.tolist() == [[40], [40]]


def test_short_plan_is_taken_apart_only_in_part() -> None:
    """The best first move is that of the VM of 40; the best two are those of VMs of 25."""
    movers = [(0, 25), (0, 30), (0, 25), (1, 40), (1, 20), (1, 25)]
    problem = spread_problem(capacity=[100] * 3, movers=movers, max_moves=2)
    greedy, repaired = (even_out(problem, repairs=count).moves for count in (0, 30))
    assert problem.after(greedy).load.tolist() == [[55], [45], [65]]
    assert problem.after(repaired).load.tolist() == [[55], [60], [50]]


@pytest.mark.parametrize("measure", MEASURES)
def test_a_gain_that_does_not_pay_the_cost_is_left_alone(measure: Measure) -> None:
    """One move takes the squared deviation from 0.08 to 0 and the peak from 0.6 to 0.4, in 1 s."""
    dear, cheap = (
        spread_problem(
            capacity=[100, 100],
            movers=[(0, 20)] * 3,
            immovable=[0, 20],
            measure=measure,
            min_gain_per_cost_second=margin,
        )
        for margin in (0.21, 0.07)
    )
    assert even_out(dear).moves == ()
    assert len(even_out(cheap).moves) == 1


@pytest.mark.parametrize("measure", MEASURES)
def test_a_node_that_does_not_count_is_neither_source_nor_target(measure: Measure) -> None:
    problem = spread_problem(capacity=[100, 100], movers=[(0, 20)] * 4, measure=measure)
    problem.counts[1] = False
    assert even_out(problem).moves == ()


def test_a_vm_steps_aside_for_a_larger_one_that_fits_nowhere_now() -> None:
    """Nodes at 95/75/65 %; alone, the VM of 12 % has no room and that of 10 % brings nothing."""
    problem = spread_problem(
        capacity=[100, 100, 100], movers=[(0, 12), (1, 10)], immovable=[83, 65, 65]
    )
    problem.headroom[:] = [[0], [5], [10]]
    evened = even_out(problem)
    assert evened.moves == ((1, 2), (0, 1))
    check_plan(problem, evened.moves)


@pytest.mark.parametrize("measure", MEASURES)
def test_nothing_to_move_is_no_error(measure: Measure) -> None:
    problem = spread_problem(capacity=[100, 100], movers=[], immovable=[50, 0], measure=measure)
    assert even_out(problem).moves == ()
    assert least_measure(problem, ()) == pytest.approx(problem.value)


@settings(max_examples=100, deadline=None)
@given(problem=st.sampled_from(Measure).flatmap(spread_problems))
def test_every_plan_keeps_to_the_rules_and_is_worth_its_cost(problem: SpreadProblem) -> None:
    evened = even_out(problem, repairs=2)
    check_plan(problem, evened.moves)
    assert evened.before == problem.value
    assert evened.after == problem.after(evened.moves).value
    gain = evened.before - evened.after
    assert gain > problem.price(evened.moves) if evened.moves else gain == 0


@settings(max_examples=100, deadline=None)
@given(problem=st.sampled_from(Measure).flatmap(spread_problems))
def test_a_second_run_does_nothing_unless_it_moves_a_vm_twice(problem: SpreadProblem) -> None:
    unlimited = with_limit(problem, problem.mover_count + 1)
    first = dict(even_out(unlimited, repairs=2).moves)
    second = dict(even_out(unlimited.after(tuple(first.items()))).moves)
    both = {**first, **second}
    away = [(i, target) for i, target in both.items() if target != problem.mover_node[i]]
    assert not second or (first.keys() & second.keys() and not has_order(problem, away))


def has_order(problem: SpreadProblem, moves: Sequence[tuple[int, int]]) -> bool:
    """Whether the moves can be made one after the other, by looking at all ways."""
    known = {frozenset[tuple[int, int]]()}
    waiting = list(known)
    while waiting:
        made = waiting.pop()
        if len(made) == len(moves):
            return True
        state = problem.after(tuple(made))
        for mover, target in set(moves) - made:
            more = made | {(mover, target)}
            if more not in known and state.homes(mover, state.headroom)[target]:
                known.add(more)
                waiting.append(more)
    return False
