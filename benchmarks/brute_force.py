"""The planner against exhaustive search on many small problems: `python -m benchmarks.brute_force`.

Problems are tight and odd on purpose: over-committed nodes, movers that need more than they leave,
charges, nodes that bar a class. Ends with an error if an answer was wrong.
"""

from collections import Counter
from functools import partial
from typing import Annotated

import numpy as np
import typer

from benchmarks.replay import replay
from benchmarks.report import heading, row
from rebalancer.planning.fit import solve_fit
from rebalancer.planning.flow import solve_flow
from rebalancer.planning.problem import FitProblem, Outcome
from tests.planning.brute_force import cheapest


def random_problem(seed: int) -> FitProblem:
    """Up to four nodes and six movers, two resources."""
    rng = np.random.default_rng(seed)
    nodes, movers, classes = rng.integers(2, 5), rng.integers(2, 7), rng.integers(1, 3)
    release = np.column_stack([rng.integers(1, 7, movers), rng.integers(0, 3, movers)])
    grows = rng.random((movers, 2)) < 0.15
    return FitProblem(
        request=np.array([rng.integers(6, 14), rng.integers(0, 4)]),
        landing=rng.random(nodes) < 0.75,
        headroom=np.column_stack([rng.integers(-1, 10, nodes), rng.integers(-1, 7, nodes)]),
        mover_node=rng.integers(0, nodes, movers),
        mover_request=release + grows,
        mover_release=release,
        mover_cost=rng.integers(1, 10, movers),
        mover_class=rng.integers(0, classes, movers),
        allowed=rng.random((classes, nodes)) < 0.85,
        charge=np.maximum(0, rng.integers(-3, 4, (classes, nodes))),
        max_moves=10,
    )


def judge(outcome: Outcome, expected: int | None) -> str:
    """What the answer was worth, beside the cost of the cheapest plan; `WRONG` if it misleads."""
    cost = outcome.solution.cost if outcome.solution else None
    if expected is None:
        if cost is not None:
            return "WRONG: a plan where there is none"
        return "impossible, proven" if outcome.is_proven else "impossible, not proven"
    if outcome.bound > expected:
        return "WRONG: a bound above the cheapest plan"
    if cost is None:
        return "a plan exists, none found"
    if cost < expected:
        return "WRONG: cheaper than the cheapest plan"
    if outcome.is_proven:
        return "cheapest plan, proven"
    return "cheapest plan, not proven" if cost == expected else "a dearer plan, not proven"


def main(
    problems: Annotated[int, typer.Option(help="How many that do not fit as they are.")] = 10_000,
    work_limit: Annotated[float, typer.Option(help="Of the solver, in its own units.")] = 1,
) -> None:
    """Prints how many answers were worth what; plans are replayed."""
    verdicts: Counter[str] = Counter()
    examples: dict[str, int] = {}
    seed = 0
    while verdicts.total() < problems:
        problem = random_problem(seed)
        seed += 1
        if (problem.landing & problem.fits(problem.request, problem.headroom)).any():
            continue
        outcome = solve_fit(problem, partial(solve_flow, work_limit=work_limit))
        if outcome.solution is not None:
            replay(problem, outcome.solution.moves, outcome.solution.node)
        verdict = judge(outcome, cheapest(problem))
        verdicts[verdict] += 1
        examples.setdefault(verdict, seed - 1)
    print(heading(["answer", "problems", "first seed"]))
    for verdict, count in verdicts.most_common():
        print(row([verdict, count, examples[verdict]]))
    if any(verdict.startswith("WRONG") for verdict in verdicts):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
