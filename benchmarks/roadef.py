"""Room for one more process in clusters of another kind: `python -m benchmarks.roadef --help`.

They have the shape of the ROADEF/EURO challenge of 2012, machine reassignment, set A; numbers are
random.
Many resources, no two processes alike, services whose processes keep off each other, and transient
resources: a process that has moved still holds them on its old machine, so nobody gets them before
all moves are done.
"""

from typing import Annotated, NamedTuple

import numpy as np
import typer

from benchmarks.measure import Measured, measure_planner
from benchmarks.report import duration, heading, machine, percentile, row
from rebalancer.planning.problem import FitProblem, Outcome
from rebalancer.scheduling.state import IntArray

_CAPACITY = 100_000
_COSTS = (1, 10)
"""Of moving a process; at least the first, less than the second."""


class Shape(NamedTuple):
    """The first resources are the transient ones."""

    machines: int
    processes: int
    resources: int
    transient: int
    services: int


SHAPES = {
    "a1_4": Shape(50, 1000, 3, 1, 142),
    "a1_5": Shape(12, 1000, 4, 1, 981),
    "a2_2": Shape(100, 1000, 12, 4, 170),
    "a2_4": Shape(50, 1000, 12, 0, 180),
}


def generate(shape: Shape, fill: float, seed: int) -> FitProblem | None:
    """None where not even an empty machine could take the pending process."""
    rng = np.random.default_rng([seed, shape.machines, shape.resources, round(fill * 100)])
    capacity = rng.integers(_CAPACITY // 2, _CAPACITY, (shape.machines, shape.resources))
    share = rng.lognormal(0, 1, (shape.processes, 1)) * rng.lognormal(
        0, 0.5, (shape.processes, shape.resources)
    )
    wanted = share / share.sum(axis=0) * capacity.sum(axis=0) * fill
    request = np.maximum(1, wanted).astype(np.int64)
    service = rng.integers(0, shape.services, shape.processes)
    place, headroom = _place(rng, request, service, capacity)
    is_placed = place >= 0
    request, service, place = request[is_placed], service[is_placed], place[is_placed]
    like = request[rng.integers(len(request))].copy()
    # What nobody can free must be there already.
    like[: shape.transient] //= 4
    pending = _pending(like, headroom, capacity)
    if pending is None:
        return None
    release = request.copy()
    release[:, : shape.transient] = 0
    allowed = np.ones((shape.services, shape.machines), np.bool_)
    allowed[service, place] = False
    return FitProblem(
        request=pending,
        landing=np.ones(shape.machines, np.bool_),
        headroom=headroom,
        mover_node=place,
        mover_request=request,
        mover_release=release,
        mover_cost=rng.integers(*_COSTS, len(request)),
        mover_class=service,
        allowed=allowed,
        charge=np.zeros(allowed.shape, np.int64),
        max_moves=10,
    )


def _place(
    rng: np.random.Generator, request: IntArray, service: IntArray, capacity: IntArray
) -> tuple[IntArray, IntArray]:
    """Machine of each process, -1 for none, and what is left; large ones go first."""
    headroom = capacity.copy()
    place = np.full(len(request), -1, np.int64)
    for process in np.argsort(-request.sum(axis=1), kind="stable"):
        fits = (headroom >= request[process]).all(axis=1)
        fits[place[(service == service[process]) & (place >= 0)]] = False
        homes = np.flatnonzero(fits)
        if len(homes):
            place[process] = rng.choice(homes)
            headroom[place[process]] -= request[process]
    return place, headroom


def _pending(like: IntArray, headroom: IntArray, capacity: IntArray) -> IntArray | None:
    """Of this process's proportions, 2 % more than what fits on a machine as it is."""
    asked = like > 0
    factor = (headroom[:, asked] / like[asked]).min(axis=1).max()
    request = np.ceil(like * factor * 1.02).astype(np.int64)
    return request if (capacity >= request).all(axis=1).any() else None


def _cells(name: str, fill: float, runs: list[Measured[Outcome]]) -> list[object]:
    outcomes = [run.value for run in runs]
    seconds = [run.core_seconds for run in runs]
    return [
        name,
        f"{fill:g}",
        len(runs),
        sum(outcome.is_proven for outcome in outcomes),
        sum(outcome.is_proven and outcome.solution is None for outcome in outcomes),
        sum(outcome.solution is not None and not outcome.is_proven for outcome in outcomes),
        sum(outcome.solution is None and not outcome.is_proven for outcome in outcomes),
        duration(percentile(seconds, 0.5)),
        duration(max(seconds)),
    ]


def _run(shape: Shape, fill: float, seed: int, work_limit: float) -> Measured[Outcome] | None:
    problem = generate(shape, fill, seed)
    return None if problem is None else measure_planner(problem, work_limit)


def main(
    shape: Annotated[list[str], typer.Option(help="Repeatable.")] = list(SHAPES),  # noqa: B006
    fill: Annotated[list[float], typer.Option(help="Repeatable.")] = [0.7, 0.85],  # noqa: B006
    seeds: Annotated[int, typer.Option(help="Clusters in each cell.")] = 10,
    work_limit: Annotated[float, typer.Option(help="As in the policy: about seconds.")] = 5,
) -> None:
    """Prints a Markdown table; every plan is replayed, and times are a core's."""
    print(f"{machine()}\n")
    names = ("shape", "fill", "clusters", "proven", "of them impossible")
    print(heading([*names, "plan, not proven", "no plan, not proven", "median", "worst"]))
    for name in shape:
        for share in fill:
            found = [_run(SHAPES[name], share, seed, work_limit) for seed in range(seeds)]
            if runs := [run for run in found if run is not None]:
                print(row(_cells(name, share, runs)), flush=True)


if __name__ == "__main__":
    typer.run(main)
