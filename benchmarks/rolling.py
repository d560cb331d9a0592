"""How long `rebalancer rolling` thinks about a pool.

    python -m benchmarks.rolling

All nodes of a pool are emptied in turn; each turn goes through the checker.
"""

from typing import Annotated

import typer

from benchmarks.cluster_snapshot import snapshot_of
from benchmarks.generator import Recipe, generate
from benchmarks.measure import measure
from benchmarks.report import duration, heading, machine, row
from rebalancer.drain.rolling import rolling_turns
from rebalancer.planning.context import PlanningContext
from rebalancer.planning.view import View

_COLUMNS = ("cluster", "nodes in turn", "stuck", "proven", "migrations", "time", "each")


def main(
    shape: Annotated[list[str], typer.Option(help="Repeatable.")] = ["279/2089", "1000/10000"],  # noqa: B006
    fill: float = 0.85,
    mode: Annotated[str, typer.Option(help="How the clusters came about.")] = "hole2",
    seed: int = 0,
    nodes: Annotated[int, typer.Option(help="At most so many in each cluster.")] = 100,
) -> None:
    """Prints a Markdown table. Times are a core's."""
    print(f"{machine()}\n")
    print(heading(_COLUMNS))
    for recipe in (Recipe(each, fill, seed, mode) for each in shape):
        if found := generate(recipe):
            view = View.of(snapshot_of(found), PlanningContext())
            names = [node.name for node in view.snapshot.nodes][:nodes]
            _print(str(recipe), names, view)


def _print(name: str, names: list[str], view: View) -> None:
    done = measure(lambda: list(rolling_turns(names, view)))
    turns = done.value
    stuck = sum(turn.is_stuck for turn in turns)
    proven = sum(turn.proven for turn in turns)
    migrations = sum(len(turn.moves) for turn in turns)
    each = duration(done.core_seconds / len(turns))
    print(row([name, len(turns), stuck, proven, migrations, duration(done.core_seconds), each]))


if __name__ == "__main__":
    typer.run(main)
