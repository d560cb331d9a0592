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
