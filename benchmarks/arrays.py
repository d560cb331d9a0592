"""How long the planner takes from a snapshot to its arrays, beside decoding the same objects.

    python -m benchmarks.arrays

The bound is what decoding the same VMIs and pods into typed structs takes, with what many have in
common left as bytes: nobody plans before having read that.
"""

import argparse
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from benchmarks.manifests import Pages, Recipe, generate, read
from benchmarks.measure import measure
from benchmarks.report import heading, machine, row
from rebalancer.cluster import wire
from rebalancer.cluster.kinds import POD, VMI
from rebalancer.model.objects import Pod
from rebalancer.model.snapshot import Snapshot
from rebalancer.planning.context import PlanningContext
from rebalancer.planning.movers import find_movers, fit_problem
from rebalancer.planning.problem import FitProblem
from rebalancer.scheduling.feasibility import evaluate
from rebalancer.scheduling.state import ClusterState

_ROUNDS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--vms", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(f"{machine()}; a core's time, best of {_ROUNDS}\n")
    print(heading(("cluster", "decoding", "arrays", "for each VM", "times decoding", "classes")))
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
    classes = len(arrays(snapshot, pending).allowed)
    return [
        f"{recipe.nodes} nodes, {recipe.vms} VMs{', a volume each' if recipe.has_volumes else ''}",
        f"{decoding:.2f} s",
        f"{making:.2f} s",
        f"{making / recipe.vms * 1e6:.1f} µs",
        f"{making / decoding:.2f}",
        str(classes),
    ]


def arrays(snapshot: Snapshot, pending: Pod) -> FitProblem:
    context = PlanningContext()
    state = ClusterState(snapshot)
    return fit_problem(evaluate(pending, state), find_movers(state, context), context)


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
