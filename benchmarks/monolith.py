"""The planner against one model of the whole problem: `python -m benchmarks.monolith --help`.

Each solver has a process of its own, one thread and a hard limit.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from ortools.math_opt.python import mathopt

from benchmarks.flow_model import FlowResult, solve_flow_model
from benchmarks.generator import Recipe, fit_problem, generate
from benchmarks.measure import in_process, measure_planner
from benchmarks.report import duration, heading, machine, percentile, row
from rebalancer.planning.problem import INFINITE, FitProblem, Outcome

_SOLVERS = {"CP-SAT": mathopt.SolverType.CP_SAT, "HiGHS": mathopt.SolverType.HIGHS}
_GRACE_SECONDS = 60
"""For imports and building the model, before a process is killed."""


class Comparison(NamedTuple):
    """One cluster; a solver that had to be killed has None."""

    recipe: Recipe
    ours: Outcome
    our_core_seconds: float
    theirs: dict[str, FlowResult | None]

    def ratios(self, solver: str) -> list[tuple[float, float]]:
        """How many times longer the solver took, if both proved; without and with building its
        model.
        """
        result = self.theirs[solver]
        if result is None or not result.is_proven or not self.ours.is_proven:
            return []
        in_all = result.build_seconds + result.solve_seconds
        return [(result.solve_seconds / self.our_core_seconds, in_all / self.our_core_seconds)]

    def disagreements(self) -> list[str]:
        """Proven costs that differ: ours may only be dearer, for the sake of an order."""
        if not self.ours.is_proven:
            return []
        our_cost = self.ours.solution.cost if self.ours.solution else None
        return [
            f"{self.recipe}: ours {our_cost}, {solver} {result.cost}"
            for solver, result in self.theirs.items()
            if result is not None and result.is_proven and result.cost != our_cost
        ]


def compare(recipe: Recipe, limit_seconds: float) -> Comparison | None:
    """None where the recipe gives no cluster."""
    cluster = generate(recipe)
    if cluster is None:
        return None
    problem = fit_problem(cluster)
    ours = measure_planner(problem, limit_seconds)
    theirs = {name: _solve_apart(problem, name, limit_seconds) for name in _SOLVERS}
    return Comparison(recipe, ours.value, ours.core_seconds, theirs)


def _solve_apart(problem: FitProblem, name: str, limit_seconds: float) -> FlowResult | None:
    limit = limit_seconds + _GRACE_SECONDS
    return in_process(limit, solve_flow_model, problem, _SOLVERS[name], limit_seconds)


def _cells(found: Comparison) -> list[str]:
    ours = _cost_told(found.ours.solution and found.ours.solution.cost, found.ours.bound)
    cells = [str(found.recipe), ours, duration(found.our_core_seconds)]
    for result in found.theirs.values():
        if result is None:
            cells += ["killed", "", ""]
            continue
        seconds = f"{duration(result.build_seconds)} + {duration(result.solve_seconds)}"
        cells += [_cost_told(result.cost, result.bound), seconds, f"{result.variables}"]
    return cells


def _cost_told(cost: int | None, bound: float) -> str:
    if cost is None:
        return "impossible" if bound == INFINITE else f"none, bound {bound:.0f}"
    return f"{cost} proven" if bound >= cost else f"{cost}, bound {bound:.0f}"


def _spread(ratios: Sequence[float]) -> str:
    return f"{percentile(ratios, 0.5):.0f} ({min(ratios):.1f} to {max(ratios):.0f})"


def _summary(found: list[Comparison]) -> str:
    lines = []
    for solver in _SOLVERS:
        ratios = [ratio for one in found for ratio in one.ratios(solver)]
        if ratios:
            solving, in_all = map(_spread, zip(*ratios, strict=True))
            lines.append(
                f"- {solver}: both proved {len(ratios)} of {len(found)}; it took {solving} times as"
                f" long in the median, {in_all} times with the building of its model"
            )
        else:
            lines.append(f"- {solver}: both proved none of {len(found)}")
    differing = [text for one in found for text in one.disagreements()]
    lines.append("- Proven costs are equal everywhere." if not differing else "- Differing:")
    return "\n".join(lines + [f"  - {text}" for text in differing])


def _plot(path: Path, found: Sequence[Comparison]) -> None:
    from benchmarks.plots import plot_beside

    times = {
        name: [
            (one.our_core_seconds, result.solve_seconds)
            for one in found
            if one.ours.is_proven and (result := one.theirs[name]) is not None and result.is_proven
        ]
        for name in _SOLVERS
    }
    plot_beside(path, times)


def main(
    shape: Annotated[list[str], typer.Option(help="Repeatable.")] = ["50/500", "279/2089"],  # noqa: B006
    fill: Annotated[list[float], typer.Option(help="Repeatable.")] = [0.85, 0.95],  # noqa: B006
    mode: Annotated[list[str], typer.Option(help="Repeatable.")] = ["hole2"],  # noqa: B006
    seeds: Annotated[int, typer.Option(help="Clusters in each cell.")] = 2,
    limit_seconds: Annotated[float, typer.Option(help="For each solver and cluster.")] = 60,
    plot: Annotated[Path | None, typer.Option(help="SVG file: a point for each cluster.")] = None,
) -> None:
    """Prints a Markdown table; a core's seconds, to build and to solve a model apart."""
    print(f"{machine()}; one thread, {limit_seconds:.0f} s each\n")
    recipes = [Recipe(s, f, i, m) for s in shape for f in fill for m in mode for i in range(seeds)]
    headings = ["cluster", "planner", "time"]
    for solver in _SOLVERS:
        headings += [solver, "build + solve", "variables"]
    print(heading(headings))
    found = []
    for recipe in recipes:
        if (one := compare(recipe, limit_seconds)) is not None:
            print(row(_cells(one)), flush=True)
            found.append(one)
    print(f"\n{_summary(found)}")
    if plot is not None:
        _plot(plot, found)


if __name__ == "__main__":
    typer.run(main)
