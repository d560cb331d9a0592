"""How near to even a cluster gets with so many moves: `python -m benchmarks.spread --help`.

Peers are a plain greedy rule, which takes the best single move again and again, and Ganeti's
hbal, which has a like measure but knows nothing of nodes that bar a VM: it is asked about
clusters without such.
"""

from typing import Annotated

import msgspec
import numpy as np
import typer

from benchmarks import spread_hbal
from benchmarks.generator import CPU, MEMORY, Cluster, Recipe, fit_problem, generate
from benchmarks.measure import Measured, measure
from benchmarks.report import duration, heading, machine, row
from rebalancer.planning.problem import Moves
from rebalancer.planning.spread import Evened, even_out, least_measure
from rebalancer.planning.spread_draft import in_order
from rebalancer.planning.spread_problem import Measure, SpreadProblem

_LOAD = [CPU, MEMORY]


def spread_problem(cluster: Cluster, max_moves: int, measure: Measure) -> SpreadProblem:
    """What is requested is to be even, whatever it costs."""
    fit = fit_problem(cluster, max_moves)
    return SpreadProblem(
        **fit.fields(),
        load=(cluster.allocatable - cluster.headroom)[:, _LOAD],
        capacity=cluster.allocatable[:, _LOAD],
        mover_load=fit.mover_request[:, _LOAD],
        counts=np.ones(len(cluster.allocatable), np.bool_),
        measure=measure,
        min_gain_per_cost_second=0.0,
    )


def without_rules(problem: SpreadProblem) -> SpreadProblem:
    """Every VM may go everywhere, there is no limit on pods, and a node is what its VMs have."""
    load = np.zeros_like(problem.load)
    np.add.at(load, problem.mover_node, problem.mover_load)
    headroom = problem.headroom[:, _LOAD]
    return msgspec.structs.replace(
        problem,
        headroom=headroom,
        mover_request=problem.mover_request[:, _LOAD],
        mover_release=problem.mover_release[:, _LOAD],
        allowed=np.ones_like(problem.allowed),
        load=load,
        capacity=headroom + load,
    )


def greedy(problem: SpreadProblem) -> Moves:
    """The best single move, again and again; nobody moves twice."""
    state, moves = problem, dict[int, int]()
    _, first, kind = np.unique(problem.kinds, return_index=True, return_inverse=True)
    while len(moves) < problem.max_moves:
        deviation = state.load / state.capacity - state.mean
        size = problem.mover_load[first][:, None] / problem.capacity
        arrival = (2 * deviation * size + size**2).sum(axis=2)
        request = problem.mover_request[first][:, None]
        room = ((request <= state.headroom) | (request == 0)).all(axis=2)
        arrival[~(room & problem.allowed[problem.mover_class[first]])] = np.inf
        own = problem.mover_load / problem.capacity[problem.mover_node]
        departure = (own**2 - 2 * own * deviation[problem.mover_node]).sum(axis=1)
        change = departure + arrival.min(axis=1)[kind]
        change[list(moves)] = np.inf
        mover = int(np.argmin(change))
        if change[mover] > -1e-9:
            break
        moves[mover] = int(arrival[kind[mover]].argmin())
        state = state.after(((mover, moves[mover]),))
    return tuple(moves.items())


def replayed(problem: SpreadProblem, moves: Moves) -> float:
    """The measure after the moves, which are carried out one by one in their order.

    Raises: ValueError, if they cannot be.
    """
    if in_order(problem, moves) != moves or len(moves) > problem.max_moves:
        raise ValueError("the moves cannot be carried out in their order")
    return problem.after(moves).value


def _gap(problem: SpreadProblem, value: float, bound: float) -> str:
    return f"{(value - bound) / (problem.value - bound):.1%}" if value > bound else "0.0%"


def _told(problem: SpreadProblem, measured: Measured[Evened], bound: float) -> list[object]:
    after = replayed(problem, measured.value.moves)
    return [f"{after:.4g}", _gap(problem, after, bound), duration(measured.core_seconds)]


def _squares(problem: SpreadProblem, repairs: int) -> list[object]:
    simple = replayed(problem, greedy(problem))
    quick = measure(lambda: even_out(problem, repairs=0))
    better = measure(lambda: even_out(problem, repairs))
    bound = measure(lambda: least_measure(problem, better.value.moves))
    return [
        f"{problem.value:.4g}",
        *(f"{simple:.4g}", _gap(problem, simple, bound.value)),
        *_told(problem, quick, bound.value),
        *_told(problem, better, bound.value),
        *(f"{bound.value:.4g}", duration(bound.core_seconds)),
    ]


def _peaks(problem: SpreadProblem) -> list[object]:
    found = measure(lambda: even_out(problem))
    bound = least_measure(problem, found.value.moves)
    told = _told(problem, found, bound)
    return [f"{problem.value:.4g}", *told, len(found.value.moves), f"{bound:.4g}"]


def _beside_hbal(problem: SpreadProblem, limit_seconds: float) -> list[list[object]]:
    ours = measure(lambda: even_out(problem))
    theirs = spread_hbal.balance(problem, limit_seconds)
    plans = [("before", (), 0.0), ("planner", ours.value.moves, ours.seconds)]
    plans += [("hbal", theirs.value, theirs.seconds)] if theirs else []
    rows = []
    for name, moves, seconds in plans:
        after = problem.after(moves)
        told = [f"{after.value:.4g}", f"{spread_hbal.score(after):.4g}"]
        rows.append([name, *told, len(moves), duration(seconds)])
    if not theirs:
        rows.append(["hbal", f"not done in {limit_seconds:.0f} s", "-", "-", "-"])
    return rows


def main(
    shape: Annotated[list[str], typer.Option(help="Repeatable.")] = ["279/2089", "1000/10000"],  # noqa: B006
    fill: Annotated[list[float], typer.Option(help="Repeatable.")] = [0.7, 0.85, 0.95],  # noqa: B006
    moves: Annotated[list[int], typer.Option(help="Repeatable.")] = [50, 200],  # noqa: B006
    seeds: Annotated[int, typer.Option(help="Clusters in each cell.")] = 1,
    repairs: Annotated[int, typer.Option(help="Of the plans that are given more time.")] = 50,
    hbal_shape: Annotated[str, typer.Option(help="It takes long.")] = "50/500",
    hbal_limit_seconds: Annotated[float, typer.Option(help="For each cluster.")] = 300,
) -> None:
    """Prints Markdown tables; plans are replayed. Gaps are shares of what could be gained.

    Times are a core's, but beside hbal.
    """
    recipes = [Recipe(s, f, i, "churn") for s in shape for f in fill for i in range(seeds)]
    cases = [(r, c, m) for r in recipes if (c := generate(r)) is not None for m in moves]
    print(f"{machine()}\n")
    plan = ["after", "gap", "time"]
    better = [f"{repairs} repairs", *plan[1:]]
    greedy_names = ["greedy", "gap"]
    print(heading(["cluster", "moves", "before", *greedy_names, *plan, *better, "bound", "time"]))
    for recipe, cluster, most in cases:
        problem = spread_problem(cluster, most, Measure.SQUARED_DEVIATION)
        print(row([recipe, most, *_squares(problem, repairs)]), flush=True)
    print(f"\n{heading(['cluster', 'at most', 'peak before', *plan, 'moves', 'bound'])}")
    for recipe, cluster, most in cases:
        print(row([recipe, most, *_peaks(spread_problem(cluster, most, Measure.PEAK))]), flush=True)
    if not spread_hbal.is_installed():
        print("\nhbal is not installed; it is in Debian's package ganeti-htools")
        raise typer.Exit(1)
    names = ["cluster", "at most", "plan", "squared deviation", "hbal's score", "moves", "time"]
    print(f"\n{heading(names)}")
    for recipe in [Recipe(hbal_shape, f, i, "churn") for f in fill for i in range(seeds)]:
        generated = generate(recipe)
        if generated is not None:
            full = spread_problem(generated, moves[0], Measure.SQUARED_DEVIATION)
            problem = without_rules(full)
            for cells in _beside_hbal(problem, hbal_limit_seconds):
                print(row([recipe, moves[0], *cells]), flush=True)


if __name__ == "__main__":
    typer.run(main)
