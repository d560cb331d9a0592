"""How long the planner takes from a snapshot to its arrays, beside decoding the same objects, and
from the arrays of one goal to those of the next.

    python -m benchmarks.arrays

The bound is what decoding the same VMIs and pods into typed structs takes, with what many have in
common left as bytes: nobody plans before having read that. Between the goals five VMs are moved,
each once another has left, which puts ten pods more into the cluster: five targets, five holds.
"""

import argparse
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from benchmarks.manifests import Pages, Recipe, generate, read
from benchmarks.measure import measure
from benchmarks.report import heading, machine, row
from rebalancer.cli.garbage import collect_seldom
from rebalancer.cluster import wire
from rebalancer.cluster.kinds import POD, VMI
from rebalancer.model.objects import Pod
from rebalancer.model.plan import Cost, Goal, Move, Proposal, Subject, Verdict
from rebalancer.model.snapshot import Snapshot
from rebalancer.planning.context import PlanningContext
from rebalancer.planning.movers import fit_problem
from rebalancer.planning.problem import FitProblem
from rebalancer.planning.view import View
from rebalancer.scheduling.feasibility import evaluate

_ROUNDS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--vms", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    collect_seldom()
    print(f"{machine()}; a core's time, best of {_ROUNDS}\n")
    columns = "decoding", "arrays", "for each VM", "times decoding", "next arrays", "times faster"
    print(heading(("cluster", *columns, "classes")))
    for has_volumes in (False, True):
        recipe = Recipe(options.nodes, options.vms, options.seed, has_volumes)
        print(row(_measured(recipe)), flush=True)


def _measured(recipe: Recipe) -> list[str]:
    pages = generate(recipe)
    snapshot = read(pages)
    pending = _pending(snapshot)
    decoding = _core_seconds(lambda: decode(pages))
    # A copy has none of the indexes that were made before.
    making = _core_seconds(lambda: arrays(replace(snapshot), pending))
    view = View.of(snapshot, PlanningContext())
    classes = len(arrays_of(view, pending).allowed)
    proposal = five_moves(view)
    # The first goal to come makes the indexes that all the others carry over.
    arrays_of(view.after(proposal), pending)
    next_arrays = _core_seconds(lambda: arrays_of(view.after(proposal), pending))
    return [
        f"{recipe.nodes} nodes, {recipe.vms} VMs{', a volume each' if recipe.has_volumes else ''}",
        f"{decoding:.2f} s",
        f"{making:.2f} s",
        f"{making / recipe.vms * 1e6:.1f} µs",
        f"{making / decoding:.2f}",
        f"{next_arrays * 1000:.0f} ms",
        f"{making / next_arrays:.0f}",
        str(classes),
    ]


def arrays(snapshot: Snapshot, pending: Pod) -> FitProblem:
    return arrays_of(View.of(snapshot, PlanningContext()), pending)


def arrays_of(view: View, pending: Pod) -> FitProblem:
    return fit_problem(evaluate(pending, view.state), view.movers, view.context)


def five_moves(view: View) -> Proposal:
    """Of VMs from all over the cluster, each to the node behind its own; room is not asked for."""
    movers, nodes = view.movers.movers, view.state.nodes
    goal = Goal("Benchmark", Subject("Node", "", "any", "any"), Verdict.PLANNED)
    return Proposal(
        goal,
        tuple(
            Move(
                id=str(mover.vmi.key),
                vmi=mover.vmi.key,
                vmi_uid=mover.vmi.uid,
                source=nodes[mover.source].name,
                target=nodes[(mover.source + 1) % len(nodes)].name,
                bytes=0,
                seconds=0.0,
                cost=Cost({}),
                after=("another",),
            )
            for mover in movers[len(movers) // 10 :: len(movers) // 5]
        ),
    )


def decode(pages: Pages) -> list[Any]:
    vmis = msgspec.json.Decoder(wire.Page[wire.VirtualMachineInstance])
    pods = msgspec.json.Decoder(wire.Page[wire.Pod])
    return [
        *(vmis.decode(page) for page in pages[VMI]),
        *(pods.decode(page) for page in pages[POD]),
    ]


def _pending(snapshot: Snapshot) -> Pod:
    """Larger than any node."""
    requests = {"cpu": 1_000, "memory": 2**40, "pods": 1}
    return replace(snapshot.pods[0], uid="pending", node_name=None, requests=requests)


def _core_seconds(call: Callable[[], object]) -> float:
    return min(measure(call).core_seconds for _ in range(_ROUNDS))


if __name__ == "__main__":
    main()
