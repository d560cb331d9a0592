"""How many nodes are emptied, beside best-fit decreasing and Ganeti's hbal.

    python -m benchmarks.drain

Nodes are emptied each by itself, from the same start. Best fit, as a descheduler or a cluster
autoscaler simulates it, puts the largest VM first, each on the node that it fills most, and moves
nobody else. Every plan of the planner is replayed. hbal knows no rules about where VMs may go, so
beside it there are none.
"""

import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, NamedTuple

import numpy as np
import typer

from benchmarks.cluster_snapshot import snapshot_of
from benchmarks.generator import Cluster, Recipe, generate
from benchmarks.measure import measure
from benchmarks.peers.ganeti import anywhere, hbal, moved
from benchmarks.replay import replay
from benchmarks.report import duration, heading, machine, percentile, row
from rebalancer.model.snapshot import Snapshot
from rebalancer.planning.context import PlanningContext
from rebalancer.planning.cost import with_target_charges
from rebalancer.planning.evacuation import Evacuation, evacuate
from rebalancer.planning.isolation import IsolatedSearch
from rebalancer.planning.movers import MILLISECONDS, Movers, find_movers
from rebalancer.planning.problem import MoveProblem, Moves
from rebalancer.policy.model import PlanningPolicy
from rebalancer.scheduling.state import ClusterState
from tests.builders import Launched, cluster, node, vm

_COLUMNS = (
    *("cluster", "by", "nodes", "emptied", "VMs", "left", "moved besides"),
    *("cost where all empty", "proven most", "median", "worst"),
)


class Emptied(NamedTuple):
    """What came of one node."""

    movable: int
    """VMs there that may go somewhere."""
    left: int
    besides: int
    """Moves of VMs on other nodes, which made room."""
    cost: int
    seconds: float
    is_most: bool = False

    @property
    def is_empty(self) -> bool:
        return self.left == 0


def best_fit(problem: MoveProblem, source: int) -> Moves:
    """Where VMs go off the node, those that find room there and then."""
    headroom = problem.headroom.copy()
    moves = []
    movers = np.flatnonzero(problem.mover_node == source)
    size = np.maximum(problem.headroom.max(axis=0), 1)
    weight = (problem.mover_request[movers] / size).max(axis=1)
    for mover in movers[np.argsort(-weight, kind="stable")].tolist():
        homes = np.flatnonzero(problem.homes(mover, headroom))
        if not len(homes):
            continue
        asked = problem.mover_request[mover] > 0
        left = ((headroom[homes] - problem.mover_request[mover]) / size)[:, asked].sum(axis=1)
        target = int(homes[left.argmin()])
        headroom[target] -= problem.mover_request[mover]
        moves.append((mover, target))
    return tuple(moves)


def fragmented(seed: int, nodes: int = 12) -> Snapshot:
    """Room enough for the VMs of the first node, in pieces that are too small for the large ones.

    As nodes of 64 GiB fill up with small VMs, and one node has large ones.
    """
    rng = np.random.default_rng(seed)
    names = [f"n{i}" for i in range(nodes)]
    launched: list[Launched] = [
        vm(f"large-{i}", on=names[0], memory=f"{gib}Gi")
        for i, gib in enumerate(rng.choice((4, 8, 12, 16, 20), 3))
    ]
    for name in names[1:]:
        left = 64 - int(rng.integers(4, 12))
        while left >= 1:
            gib = int(rng.choice([g for g in (1, 2, 4, 8, 16) if g <= left]))
            launched.append(vm(f"small-{len(launched)}", on=name, memory=f"{gib}Gi", cpu="10m"))
            left -= gib
    return cluster([node(name, memory="64Gi") for name in names], launched)


def compare(movers: Movers, source: int, deadline_seconds: float) -> tuple[Emptied, Emptied]:
    """Best fit, and the planner. Raises: NotExecutableError."""
    context = PlanningContext(planning=PlanningPolicy(deadline_seconds=deadline_seconds))
    closed = movers.state.mask(i == source for i in range(len(movers.state.nodes)))

    def plan() -> Evacuation:
        return evacuate(source, movers, closed, context, IsolatedSearch(context.planning))

    found = measure(plan)
    problem, outcome, leaving, is_most = found.value
    moves = outcome.solution.moves if outcome.solution else ()
    if outcome.solution is not None:
        replay(problem, moves, source)
    leaves = problem.mover_node == source
    movable = int(problem.allowed[problem.mover_class[leaves]].any(axis=1).sum())
    simple = measure(lambda: best_fit(problem, source))
    return (
        Emptied(
            movable,
            movable - len(simple.value),
            0,
            problem.cost(simple.value),
            simple.core_seconds,
        ),
        Emptied(
            movable,
            movable - leaving,
            len(moves) - leaving,
            problem.cost(moves),
            found.core_seconds,
            is_most,
        ),
    )


def main(
    shape: Annotated[list[str], typer.Option(help="Repeatable.")] = ["279/2089", "1000/10000"],  # noqa: B006
    fill: Annotated[list[float], typer.Option(help="Repeatable.")] = [0.7, 0.85, 0.95],  # noqa: B006
    mode: Annotated[str, typer.Option(help="How the clusters came about.")] = "hole2",
    seed: int = 0,
    nodes: Annotated[int, typer.Option(help="To be emptied in each cluster.")] = 25,
    small: Annotated[int, typer.Option(help="Fragmented clusters of 12 nodes.")] = 100,
    deadline_seconds: Annotated[float, typer.Option(help="For each node.")] = 20,
    with_hbal: Annotated[bool, typer.Option(help="Beside hbal, without rules.")] = False,
) -> None:
    """Prints a Markdown table. Times are a core's, those of hbal the clock's."""
    if with_hbal and shutil.which("hbal") is None:
        print("hbal is not installed; it is in Debian's package ganeti-htools", file=sys.stderr)
        raise typer.Exit(1)
    print(f"{machine()}; at most {deadline_seconds:g} s each\n")
    print(heading(_COLUMNS))
    if small:
        pairs = [compare(_movers(fragmented(i)), 0, deadline_seconds) for i in range(small)]
        _print("12 nodes, fragmented", ("best fit", "planner"), list(zip(*pairs, strict=True)))
    for recipe in (Recipe(s, f, seed, mode) for s in shape for f in fill):
        found = generate(recipe)
        if found is not None:
            _compare_all(str(recipe), found, nodes, deadline_seconds, with_hbal=with_hbal)


def _compare_all(
    name: str, found: Cluster, count: int, deadline_seconds: float, *, with_hbal: bool
) -> None:
    found = anywhere(found) if with_hbal else found
    movers = _movers(snapshot_of(found))
    total = len(found.allocatable)
    sources = range(0, total, max(1, total // count))[:count]
    pairs = [compare(movers, source, deadline_seconds) for source in sources]
    results = list(zip(*pairs, strict=True))
    names = ["best fit", "planner"]
    if with_hbal:
        names.append("hbal")
        results.append(tuple(_hbal(found, movers, source, deadline_seconds) for source in sources))
    _print(name, names, results)


def _hbal(found: Cluster, movers: Movers, source: int, limit_seconds: float) -> Emptied:
    here = int((found.vm_node == source).sum())
    done = hbal(found, ["-O", f"n{source}", "--evac-mode"], limit_seconds)
    if done is None:
        return Emptied(here, here, 0, 0, limit_seconds)
    left = int((moved(found, done.moves).vm_node == source).sum())
    by_name = {mover.vmi.name: mover for mover in movers.movers}
    moves = [(by_name[f"vm-{vm}"], target) for vm, target in done.moves]
    seconds = [
        with_target_charges(mover.cost, mover.rules.charges, target).total
        for mover, target in moves
    ]
    cost = round(sum(seconds) * MILLISECONDS)
    return Emptied(here, left, len(moves) - (here - left), cost, done.seconds)


def _movers(snapshot: Snapshot) -> Movers:
    return find_movers(ClusterState(snapshot), PlanningContext())


def _print(name: str, names: Sequence[str], results: Sequence[Sequence[Emptied]]) -> None:
    on_all = [all(each.is_empty for each in of_node) for of_node in zip(*results, strict=True)]
    for who, runs in zip(names, results, strict=True):
        print(row([name, who, *_cells(runs, on_all)]), flush=True)


def _cells(runs: Sequence[Emptied], on_all: Sequence[bool]) -> Iterator[object]:
    seconds = [run.seconds for run in runs]
    yield len(runs)
    yield sum(run.is_empty for run in runs)
    yield sum(run.movable for run in runs)
    yield sum(run.left for run in runs)
    yield sum(run.besides for run in runs)
    cost = sum(run.cost for run, is_on_all in zip(runs, on_all, strict=True) if is_on_all)
    yield f"{cost / MILLISECONDS:.0f} s"
    yield sum(run.is_most for run in runs) or ""
    yield duration(percentile(seconds, 0.5))
    yield duration(max(seconds))


if __name__ == "__main__":
    typer.run(main)
