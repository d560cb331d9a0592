"""The bound of the measure is below whatever is possible."""

from hypothesis import given, settings
from hypothesis import strategies as st

from rebalancer.planning.spread import even_out, least_measure
from rebalancer.planning.spread_problem import Measure, SpreadProblem
from tests.planning.spread_problems import every_plan, spread_problem, spread_problems


@settings(max_examples=100, deadline=None)
@given(
    problem=st.sampled_from(Measure).flatmap(lambda m: spread_problems(m, 3, 5)),
    rounds=st.sampled_from([1, 30]),
)
def test_bound_is_below_the_best_of_all_plans(problem: SpreadProblem, rounds: int) -> None:
    evened = even_out(problem)
    least = min(problem.after(moves).value for moves in every_plan(problem))
    assert least_measure(problem, evened.moves, rounds) <= least + 1e-9


@settings(max_examples=100, deadline=None)
@given(problem=st.sampled_from(Measure).flatmap(lambda m: spread_problems(m, 3, 5)))
def test_no_plan_is_better_than_the_best_of_all(problem: SpreadProblem) -> None:
    moves = even_out(problem).moves
    objectives = [problem.after(m).value + problem.price(m) for m in every_plan(problem)]
    assert problem.after(moves).value + problem.price(moves) >= min(objectives) - 1e-9


def test_bound_tells_that_half_a_vm_cannot_move() -> None:
    """50 and 30 %, VMs of 20 %: half a VM would make it even, a whole one changes places."""
    problem = spread_problem(
        capacity=[100, 100], movers=[(0, 20), (0, 20), (1, 20)], immovable=[10, 10], max_moves=1
    )
    assert least_measure(problem, ()) > 0.95 * problem.value
