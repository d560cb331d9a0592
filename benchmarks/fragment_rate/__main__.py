"""How near to the best the fragment rate gets: `python -m benchmarks.fragment_rate --help`."""

from typing import Annotated

import typer

from benchmarks.fragment_rate.cluster import SETTINGS, SLOT_CORES, Cluster, generate
from benchmarks.fragment_rate.greedy import Moves, improve
from benchmarks.fragment_rate.model import in_order, solve
from benchmarks.measure import Measured, measure
from benchmarks.report import duration, heading, machine, row

_HEADINGS = (
    "setting",
    "seed",
    "VMs",
    "before",
    "single moves",
    "time",
    "with pairs",
    "time",
    "model",
    "time",
    "bound",
    "moves in order",
    "share of the possible gain",
)


def _greedy(start: Cluster, max_moves: int, *, with_pairs: bool) -> tuple[Cluster, Measured[Moves]]:
    cluster = start.copy()
    return cluster, measure(lambda: improve(cluster, max_moves, with_pairs=with_pairs))


def _cells(setting: str, seed: int, max_moves: int, core_seconds: float) -> list[object]:
    start = generate(SETTINGS[setting], seed)
    single, single_run = _greedy(start, max_moves, with_pairs=False)
    paired, paired_run = _greedy(start, max_moves, with_pairs=True)
    solved = measure(lambda: solve(start, paired_run.value, max_moves, core_seconds))
    target = solved.value
    best = start.copy()
    moves = in_order(best, target)
    free = int(start.free_cores.sum())
    bound = (free - SLOT_CORES * target.max_slots) / free
    wanted = sum(target.leaving.values())
    possible = target.max_slots - start.slots
    reached = max(best.slots, paired.slots) - start.slots
    return [
        setting,
        seed,
        len(start.cores),
        f"{start.fragment_rate:.4f}",
        f"{single.fragment_rate:.4f}",
        duration(single_run.core_seconds),
        f"{paired.fragment_rate:.4f}",
        duration(paired_run.core_seconds),
        f"{best.fragment_rate:.4f}",
        duration(solved.core_seconds),
        f"{bound:.4f}",
        f"{len(moves)} of {wanted}",
        f"{(paired.slots - start.slots) / possible:.0%}, {reached / possible:.0%}",
    ]


def main(
    setting: Annotated[list[str], typer.Option(help="Repeatable.")] = list(SETTINGS),  # noqa: B006
    seeds: Annotated[int, typer.Option(help="Clusters of each setting.")] = 4,
    max_moves: Annotated[int, typer.Option(help="As in the paper.")] = 50,
    core_seconds: Annotated[float, typer.Option(help="Of a core, for the model.")] = 5,
) -> None:
    """Prints a Markdown table of fragment rates, the lower the better, after executable moves."""
    print(f"{machine()}; one thread, {core_seconds:g} s of a core for the model\n")
    print(heading(_HEADINGS))
    for name in setting:
        for seed in range(seeds):
            print(row(_cells(name, seed, max_moves, core_seconds)), flush=True)


if __name__ == "__main__":
    typer.run(main)
