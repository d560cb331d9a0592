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


def bound_wherever_pods_are(outcome: Outcome, problem: FitProblem, relaxed: FitProblem) -> float:
    """The outcome's bound, lowered to one that holds wherever moves put other pods.

    `relaxed`: the same problem, made with `ignores_placement`.
    """
    opens_landing = (relaxed.landing != problem.landing).any()
    if not opens_landing and not (relaxed.allowed & ~problem.allowed).any():
        return outcome.bound
    return min(outcome.bound, search_direct(relaxed).bound)
