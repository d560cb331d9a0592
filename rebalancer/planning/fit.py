"""The fit problem in two stages: direct search, then another for what that leaves open."""

from collections.abc import Callable

from rebalancer.planning.problem import FitProblem, Outcome
from rebalancer.planning.search import search_direct

SecondStage = Callable[[FitProblem, Outcome], Outcome]
"""Improves on what is known about a problem."""


def solve_fit(problem: FitProblem, second_stage: SecondStage) -> Outcome:
    """The cheapest executable plan, or as much as is known about it."""
    outcome = search_direct(problem)
    return outcome if outcome.is_proven else second_stage(problem, outcome)


def solve_wherever_pods_are(
    problem: FitProblem, relaxed: FitProblem, second_stage: SecondStage
) -> Outcome:
    """As `solve_fit`, with a bound that holds wherever moves put other pods.

    `relaxed`: the same problem, made with `ignores_placement`.
    """
    outcome = solve_fit(problem, second_stage)
    opens_landing = (relaxed.landing != problem.landing).any()
    if not opens_landing and not (relaxed.allowed & ~problem.allowed).any():
        return outcome
    return outcome._replace(bound=min(outcome.bound, search_direct(relaxed).bound))
