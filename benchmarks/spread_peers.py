"""How even load gets with so many moves, beside Ganeti's hbal.

    python -m benchmarks.spread_peers

Both plans are measured by both measures: hbal's score (standard deviations, added up) and ours
(squared deviations, added up); the lower the better. hbal knows no rules about where VMs may go, so
there are none here. Every plan is replayed, each move taking its room before it frees any.
"""

import shutil
import sys
from typing import Annotated

import numpy as np
import typer

from benchmarks.generator import CPU, MEMORY, Cluster, Recipe, generate
from benchmarks.measure import measure
from benchmarks.peers.ganeti import anywhere, hbal, moved
from benchmarks.report import duration, heading, machine, row
from rebalancer.planning.problem import Moves
from rebalancer.planning.spread import even_out
from rebalancer.planning.spread_draft import in_order
from rebalancer.planning.spread_problem import Measure, SpreadProblem
from rebalancer_strategies.spread_headroom.settings import BalanceSettings

_NEW_NODES = 10
"""One node in so many is new, and empty."""
_DIMENSIONS = [CPU, MEMORY]


def uneven(recipe: Recipe) -> Cluster | None:
    """A generated cluster, some nodes of which have just been added."""
    cluster = generate(recipe)
    if cluster is None:
        return None
    stays = cluster.vm_node % _NEW_NODES != 0
    columns = ("vm_node", "vm_request", "vm_class", "vm_group", "vm_is_pinned", "vm_cost")
    return anywhere(cluster._replace(**{name: getattr(cluster, name)[stays] for name in columns}))


def spread_problem(cluster: Cluster, max_moves: int) -> SpreadProblem:
    """By requested CPU and memory, as the strategy has it by default."""
    count = len(cluster.vm_node)
    return SpreadProblem(
        headroom=cluster.headroom,
        mover_node=cluster.vm_node,
        mover_request=cluster.vm_request,
        mover_release=cluster.vm_request,
        mover_cost=cluster.vm_cost,
        mover_class=np.zeros(count, np.int64),
        allowed=cluster.allowed,
        charge=np.zeros(cluster.allowed.shape, np.int64),
        max_moves=max_moves,
        load=(cluster.allocatable - cluster.headroom)[:, _DIMENSIONS],
        capacity=cluster.allocatable[:, _DIMENSIONS],
        mover_load=cluster.vm_request[:, _DIMENSIONS],
        counts=np.ones(len(cluster.allocatable), np.bool_),
        measure=Measure.SQUARED_DEVIATION,
        min_gain_per_cost_second=BalanceSettings().min_gain_per_cost_second,
    )


def main(
    shape: Annotated[list[str], typer.Option(help="Repeatable.")] = ["16/150", "50/500"],  # noqa: B006
    fill: Annotated[list[float], typer.Option(help="Repeatable.")] = [0.7, 0.85],  # noqa: B006
    moves: Annotated[list[int], typer.Option(help="At most; repeatable.")] = [5, 20],  # noqa: B006
    seeds: Annotated[int, typer.Option(help="Clusters in each cell.")] = 2,
    mode: Annotated[str, typer.Option(help="How the clusters came about.")] = "hole2",
    limit_seconds: Annotated[float, typer.Option(help="For each run of hbal.")] = 120,
) -> None:
    """Prints a Markdown table. Fails without hbal."""
    if shutil.which("hbal") is None:
        print("hbal is not installed; it is in Debian's package ganeti-htools", file=sys.stderr)
        raise typer.Exit(1)
    print(f"{machine()}; hbal at most {limit_seconds:g} s each\n")
    columns = ["cluster", "at most", "plan", "moves", "GiB"]
    print(heading([*columns, "hbal's score", "our measure", "peak", "time"]))
    for recipe in (Recipe(s, f, i, mode) for s in shape for f in fill for i in range(seeds)):
        cluster = uneven(recipe)
        if cluster is None:
            continue
        for count in moves:
            _print_rows(f"{recipe} | {count}", cluster, count, limit_seconds)


def _print_rows(name: str, cluster: Cluster, max_moves: int, limit_seconds: float) -> None:
    problem = spread_problem(cluster, max_moves)
    _print_row(f"{name} | none", problem, cluster, (), "", limit_seconds)
    ours = measure(lambda: even_out(problem).moves)
    time = duration(ours.core_seconds)
    _print_row(f"{name} | ours", problem, cluster, ours.value, time, limit_seconds)
    theirs = hbal(cluster, ["-l", str(max_moves)], limit_seconds)
    if theirs is None:
        print(row([name, "hbal", "not done", "", "", "", "", duration(limit_seconds)]), flush=True)
        return
    time = duration(theirs.seconds)
    _print_row(f"{name} | hbal", problem, cluster, theirs.moves, time, limit_seconds)


def _print_row(
    name: str,
    problem: SpreadProblem,
    cluster: Cluster,
    moves: Moves,
    time: str,
    limit_seconds: float,
) -> None:
    if in_order(problem, moves) != moves:
        print(row([name, len(moves), "cannot be carried out in this order", "", "", "", time]))
        return
    then = moved(cluster, moves)
    scored = hbal(then, ["-l", "0"], limit_seconds)
    after = spread_problem(then, 0)
    gib = sum(cluster.vm_request[vm, MEMORY] for vm, _ in moves) / 1024
    score = f"{scored.score:.4f}" if scored else "not done"
    peak = (after.load / after.capacity).max()
    cells = [len({vm for vm, _ in moves}), f"{gib:.0f}", score, f"{after.value:.4f}", f"{peak:.0%}"]
    print(row([name, *cells, time]), flush=True)


if __name__ == "__main__":
    typer.run(main)
