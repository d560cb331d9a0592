"""No answer of the planner misleads: a smaller run of `python -m benchmarks.brute_force`."""

from functools import partial

import pytest

from benchmarks.brute_force import judge, random_problem
from benchmarks.replay import replay
from rebalancer.planning.fit import solve_fit
from rebalancer.planning.flow import solve_flow
from rebalancer.planning.problem import INFINITE, Outcome, Solution
from tests.planning.brute_force import cheapest

PLAN = Solution(node=0, moves=((0, 1),), cost=5)


@pytest.mark.parametrize("start", range(0, 100, 20))
def test_no_answer_about_a_small_problem_is_wrong(start: int) -> None:
    for seed in range(start, start + 20):
        problem = random_problem(seed)
        outcome = solve_fit(problem, partial(solve_flow, work_limit=1))
        if outcome.solution is not None:
            replay(problem, outcome.solution.moves, outcome.solution.node)
        assert not judge(outcome, cheapest(problem)).startswith("WRONG"), f"seed {seed}"


@pytest.mark.parametrize(
    ("outcome", "expected", "verdict"),
    [
        (Outcome(PLAN, 5), 5, "cheapest plan, proven"),
        (Outcome(PLAN, 4), 5, "cheapest plan, not proven"),
        (Outcome(PLAN, 3), 4, "a dearer plan, not proven"),
        (Outcome(PLAN, 5), 4, "WRONG: a bound above the cheapest plan"),
        (Outcome(PLAN, 5), 6, "WRONG: cheaper than the cheapest plan"),
        (Outcome(PLAN, 5), None, "WRONG: a plan where there is none"),
        (Outcome(None, 3), 4, "a plan exists, none found"),
        (Outcome(None, INFINITE), 4, "WRONG: a bound above the cheapest plan"),
        (Outcome(None, INFINITE), None, "impossible, proven"),
        (Outcome(None, 3), None, "impossible, not proven"),
    ],
)
def test_an_answer_is_worth_what_exhaustive_search_says(
    outcome: Outcome, expected: int | None, verdict: str
) -> None:
    assert judge(outcome, expected) == verdict
