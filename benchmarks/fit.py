"""How often and how fast the planner proves its plan: `python -m benchmarks.fit --help`."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from benchmarks.generator import SHAPES, Recipe, fit_problem, generate
from benchmarks.measure import measure_planner
from benchmarks.report import duration, heading, machine, percentile, row
from rebalancer.planning.problem import Outcome

_HEADINGS = (
    "shape",
    "fill",
    "mode",
    "clusters",
    "proven",
    "within {limit}",
    "median",
    "p95",
    "worst",
    "memory",
    "moves",
    "worst gap",
    "no plan, open",
)


class Run(NamedTuple):
    """One cluster planned."""

    recipe: Recipe
    outcome: Outcome
    core_seconds: float
    peak_bytes: int

    @property
    def gap(self) -> float:
        """Share of the plan's cost above the bound; 0 without a plan."""
        solution = self.outcome.solution
        return 1 - self.outcome.bound / solution.cost if solution else 0.0


def run(recipe: Recipe, work_limit: float) -> Run | None:
    """None where the recipe gives no cluster. Raises: NotExecutableError."""
    cluster = generate(recipe)
    if cluster is None:
        return None
    problem = fit_problem(cluster)
    measured = measure_planner(problem, work_limit)
    return Run(recipe, measured.value, measured.core_seconds, measured.peak_bytes)


def _cells(runs: Sequence[Run], within_seconds: float) -> Iterator[object]:
    recipe = runs[0].recipe
    seconds = [run.core_seconds for run in runs]
    moves = [len(run.outcome.solution.moves) for run in runs if run.outcome.solution]
    proven = [run for run in runs if run.outcome.is_proven]
    quick = [run for run in proven if run.core_seconds <= within_seconds]
    yield from (recipe.shape, f"{recipe.fill:.2f}", recipe.mode, len(runs))
    yield _share(len(proven), len(runs))
    yield _share(len(quick), len(runs))
    yield duration(percentile(seconds, 0.5))
    yield duration(percentile(seconds, 0.95))
    yield duration(max(seconds))
    yield f"{max(run.peak_bytes for run in runs) / 2**20:.0f} MiB"
    yield f"{percentile(moves, 0.5)} (max {max(moves)})" if moves else "-"
    yield f"{max(run.gap for run in runs):.0%}"
    yield sum(run.outcome.solution is None and not run.outcome.is_proven for run in runs)


def _share(count: int, total: int) -> str:
    return f"{count / total:.1%}"


def _plot(path: Path, groups: Sequence[Sequence[Run]]) -> None:
    from benchmarks.plots import plot_shares

    seconds = {}
    for runs in groups:
        recipe = runs[0].recipe
        name = f"{recipe.shape}, fill {recipe.fill:g}, {recipe.mode}"
        seconds[name] = [run.core_seconds for run in runs if run.outcome.is_proven]
    plot_shares(path, seconds, [len(runs) for runs in groups])


def _told(run: Run) -> str:
    solution = run.outcome.solution
    cost = f"cost {solution.cost} in {len(solution.moves)} moves" if solution else "no plan"
    return (
        f"- {run.recipe}: {cost}, bound {run.outcome.bound:.0f}, {duration(run.core_seconds)}:"
        f" {run.outcome.gave_up_because}"
    )


def main(
    shape: Annotated[list[str], typer.Option(help="Repeatable.")] = list(SHAPES),  # noqa: B006
    fill: Annotated[list[float], typer.Option(help="Repeatable.")] = [0.7, 0.85, 0.95, 0.98],  # noqa: B006
    mode: Annotated[list[str], typer.Option(help="Repeatable.")] = ["hole2"],  # noqa: B006
    seeds: Annotated[int, typer.Option(help="Clusters in each cell.")] = 10,
    work_limit: Annotated[float, typer.Option(help="As in the policy: about seconds.")] = 5,
    within_seconds: Annotated[float, typer.Option(help="What to count as quick.")] = 0.5,
    equal_costs: Annotated[bool, typer.Option(help="VMs of one size cost the same.")] = False,
    grouped_share: Annotated[float, typer.Option(help="VMs with anti-affinity.")] = 0.02,
    plot: Annotated[Path | None, typer.Option(help="SVG file: how many within what time.")] = None,
) -> None:
    """Plans for generated clusters and prints a Markdown table; every plan is replayed.

    Times are a core's, so that other work on the machine hardly counts.
    """
    print(f"{machine()}\n")
    print(heading([text.format(limit=duration(within_seconds)) for text in _HEADINGS]))
    groups, unproven, skipped = [], [], 0
    for recipes in (
        [Recipe(s, f, seed, m, equal_costs, grouped_share) for seed in range(seeds)]
        for s in shape
        for f in fill
        for m in mode
    ):
        runs = [found for recipe in recipes if (found := run(recipe, work_limit)) is not None]
        skipped += len(recipes) - len(runs)
        if runs:
            print(row(list(_cells(runs, within_seconds))), flush=True)
            groups.append(runs)
        unproven += [run for run in runs if not run.outcome.is_proven]
    if plot is not None:
        _plot(plot, groups)
    print(f"\nLeft out, since every pending VM fits as it is: {skipped} clusters.")
    if unproven:
        print("\nNot proven:\n")
        print("\n".join(map(_told, unproven)))


if __name__ == "__main__":
    typer.run(main)
