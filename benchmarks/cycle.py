"""How long the strategies take to plan one cycle of a large cluster, beside reading the cluster.

    python -m benchmarks.cycle

Each strategy is asked alone, then all together. Five Pending VMs need 400 GiB, more than any node
has free, two nodes are to be emptied, a size of 300 GiB is to fit three times, VMs are to survive
the loss of each node, and requested memory and CPU are to be evened out. The bound is what decoding
the objects takes and collecting them into a snapshot.
"""

import argparse
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from msgspec.structs import replace

from benchmarks.manifests import Recipe, generate, read
from benchmarks.measure import measure
from benchmarks.report import duration, heading, machine, row
from rebalancer.cli.garbage import collect_seldom
from rebalancer.model.plan import Plan
from rebalancer.model.snapshot import Snapshot
from rebalancer.planner import ActiveStrategy, make_plan
from rebalancer.planning.context import PlanningContext
from rebalancer.policy.model import Mode
from rebalancer.strategy import load_strategies
from tests.builders import pending_vm

_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "FitPendingVMs": {},
    "ConsolidateForDrain": {},
    "SpreadHeadroom": {
        "headroom": {
            "failureDomain": "Node",
            "sizes": [{"name": "large", "memory": "300Gi", "vcpus": 4, "count": 3}],
        },
        "balance": {"by": "Requests", "onlyAbove": 0.6},
    },
}
_COLUMNS = "cluster", "strategy", "goals", "migrations", "planning", "times reading", "MiB"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[500, 5_000])
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    collect_seldom()
    print(f"{machine()}; a core's time\n")
    print(heading(_COLUMNS))
    for nodes in options.nodes:
        _measure_cluster(Recipe(nodes, 20 * nodes, options.seed))


def _measure_cluster(recipe: Recipe) -> None:
    reading = measure(partial(read, generate(recipe)))
    snapshot = in_need(reading.value)
    for names in (*((name,) for name in _SETTINGS), tuple(_SETTINGS)):
        # A copy has none of the indexes that were made before.
        planning = measure(partial(plan, replace(snapshot), names))
        cells = (
            f"{recipe.nodes} nodes, {recipe.vms} VMs",
            names[0] if len(names) == 1 else "all",
            len(planning.value.goals),
            len(planning.value.moves),
            duration(planning.core_seconds),
            f"{planning.core_seconds / reading.core_seconds:.1f}",
            planning.peak_bytes // 2**20,
        )
        print(row(cells), flush=True)


def plan(snapshot: Snapshot, names: Sequence[str]) -> Plan:
    strategies = load_strategies()
    active = [
        ActiveStrategy(
            strategies[name],
            Mode.AUTOMATIC,
            strategies[name].settings_type.model_validate(_SETTINGS[name]),
        )
        for name in names
    ]
    return make_plan(snapshot, active, PlanningContext())


def in_need(snapshot: Snapshot) -> Snapshot:
    """With VMs that are Pending and nodes that are to be emptied."""
    since = snapshot.taken_at - timedelta(hours=1)
    launched = [
        pending_vm(f"pending-{i}", "400Gi", cpu="4", created_at=since, unschedulable_since=since)
        for i in range(5)
    ]
    drained = {node.name for node in snapshot.nodes[10:12]}
    return replace(
        snapshot,
        nodes=tuple(
            replace(node, drain_sign="to be emptied") if node.name in drained else node
            for node in snapshot.nodes
        ),
        vmis=(*snapshot.vmis, *(vmi for vmi, _ in launched)),
        pods=(*snapshot.pods, *(pod for _, pod in launched)),
    )


if __name__ == "__main__":
    main()
