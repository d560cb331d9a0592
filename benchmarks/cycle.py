"""How long the strategies take to plan one cycle of a large cluster, beside reading the cluster.

    python -m benchmarks.cycle

The bound is what decoding the objects takes and collecting them into a snapshot. Each strategy is
asked alone, then all together: five Pending VMs need 400 GiB, more than most nodes have free, two
nodes are to be emptied, a size of 300 GiB is to fit three times, VMs are to survive the loss of
each node, and requested memory and CPU are to be evened out. Then there are fifty equal VMs
instead, as after the loss of a node, and five of different sizes for which every node is too small.
"""

import argparse
from collections.abc import Iterable, Mapping, Sequence
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
_COLUMNS = "cluster", "asked", "goals", "migrations", "planning", "times reading", "MiB"


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
    in_need = to_be_emptied(with_pending(reading.value, [400] * 5))
    fifty = with_pending(reading.value, [400] * 50)
    too_large = with_pending(reading.value, range(600, 605))
    fit = ("FitPendingVMs",)
    cases = (
        *((name, in_need, (name,)) for name in _SETTINGS),
        ("all", in_need, tuple(_SETTINGS)),
        ("FitPendingVMs, fifty equal", fifty, fit),
        ("FitPendingVMs, five too large", too_large, fit),
    )
    for what, snapshot, names in cases:
        # A copy has none of the indexes that were made before.
        planning = measure(partial(plan, replace(snapshot), names))
        cells = (
            f"{recipe.nodes} nodes, {recipe.vms} VMs",
            what,
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


def with_pending(snapshot: Snapshot, gibibytes: Iterable[int]) -> Snapshot:
    """With VMs of these sizes that the scheduler has found no node for."""
    since = snapshot.taken_at - timedelta(hours=1)
    launched = [
        pending_vm(
            f"pending-{i}", f"{size}Gi", cpu="4", created_at=since, unschedulable_since=since
        )
        for i, size in enumerate(gibibytes)
    ]
    return replace(
        snapshot,
        vmis=(*snapshot.vmis, *(vmi for vmi, _ in launched)),
        pods=(*snapshot.pods, *(pod for _, pod in launched)),
    )


def to_be_emptied(snapshot: Snapshot) -> Snapshot:
    """With signs on two nodes."""
    chosen = {node.name for node in snapshot.nodes[10:12]}
    nodes = (
        replace(node, drain_sign="to be emptied") if node.name in chosen else node
        for node in snapshot.nodes
    )
    return replace(snapshot, nodes=tuple(nodes))


if __name__ == "__main__":
    main()
