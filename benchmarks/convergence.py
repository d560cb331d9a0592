"""Whether all strategies together come to rest on clusters where VMs come and go.

    python -m benchmarks.convergence --clusters 500

Every cluster is simulated; the simulation fails should a node ever be over-committed. Ends with 1
if a rule is broken. A cluster is reproducible by its seed.
"""

import argparse
import sys
from collections import Counter
from datetime import datetime, timedelta
from random import Random
from typing import NamedTuple

from msgspec.structs import replace

from rebalancer.cluster.simulated import SimulatedCluster
from rebalancer.execution.events import Event
from rebalancer.loop import run_cycle
from rebalancer.model.keys import HOSTNAME, ZONE
from rebalancer.model.plan import Plan
from rebalancer.model.snapshot import Snapshot
from rebalancer.planner import ActiveStrategy, make_plan
from rebalancer.planning.context import PlanningContext
from rebalancer.planning.spread import even_out, least_measure
from rebalancer.planning.spread_problem import SpreadProblem
from rebalancer.planning.view import View
from rebalancer.policy.model import ExecutionPolicy, Mode
from rebalancer.strategy import load_strategies
from rebalancer_strategies.spread_headroom.balance_problem import balance_problem
from rebalancer_strategies.spread_headroom.load import load_of
from rebalancer_strategies.spread_headroom.settings import SpreadHeadroomSettings
from tests.builders import Launched, cluster, node, pending_vm, vm

CYCLES = 20
_CYCLES_PER_CHANGE = 5
_CYCLE_SECONDS = 4000
"""So long that no VM is barred any more by what was done in the cycle before: what does not move
then is at rest."""
_COOLDOWN_SECONDS = 3600
_BOOT_SECONDS = 300
_SIZES_GIB = (2, 4, 8, 8, 16)
_SHARE_TIED = 0.05
_SETTINGS = {
    "FitPendingVMs": {"graceSeconds": 0},
    "ConsolidateForDrain": {},
    "SpreadHeadroom": {
        "headroom": {"sizes": [{"name": "large", "memory": "16Gi"}]},
        "balance": {"resources": ["memory"], "onlyAbove": 0.6},
    },
}
_CONTEXT = PlanningContext(execution=ExecutionPolicy(cooldown_seconds=_COOLDOWN_SECONDS))


class History(NamedTuple):
    """What has come of one cluster, or of several."""

    clusters: int = 0
    cycles: int = 0
    migrations: int = 0
    restless_cycles: int = 0
    """With migrations although nothing had changed since a cycle without any."""
    early_migrations: int = 0
    """Of VMs within their cooldown."""
    rejected_plans: int = 0
    """In which the checker found a broken rule."""
    most_migrations: int = 0
    """Of one VM."""

    @property
    def broken(self) -> int:
        return self.restless_cycles + self.early_migrations + self.rejected_plans

    def plus(self, other: "History") -> "History":
        sums = History(*(one + two for one, two in zip(self, other, strict=True)))
        return sums._replace(most_migrations=max(self.most_migrations, other.most_migrations))


class Final(NamedTuple):
    """What is known about the clusters as they are in the end."""

    goals: Counter[str]
    """By strategy, verdict, and whether that is proven."""
    gaps: tuple[float, ...]
    """Of the clusters with a node that is above `onlyAbove`: the squared deviation less the bound
    on what one more cycle's moves could leave of it, whatever they cost."""
    barred: int
    """How many of these have moves that would be worth it but for a rule or for headroom."""

    def plus(self, other: "Final") -> "Final":
        return Final(self.goals + other.goals, self.gaps + other.gaps, self.barred + other.barred)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--clusters", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0, help="of the first cluster")
    options = parser.parse_args()
    total, final = History(), Final(Counter(), (), 0)
    for seed in range(options.seed, options.seed + options.clusters):
        history, end = run(seed)
        total, final = total.plus(history), final.plus(end)
        if history.broken:
            print(f"seed {seed}: {history}", flush=True)
        print(f"\rseed {seed}, {total.broken} broken rules", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print(f"{total.clusters} clusters, {total.cycles} cycles, seeds from {options.seed}")
    print(f"migrations: {total.migrations}; most of one VM: {total.most_migrations}")
    print(f"cycles with migrations though nothing had changed: {total.restless_cycles}")
    print(f"migrations within a cooldown: {total.early_migrations}")
    print(f"plans that break a rule: {total.rejected_plans}")
    print("goals in the end:")
    for goal, count in sorted(final.goals.items()):
        print(f"  {count} {goal}")
    gaps = sorted(final.gaps)
    if gaps:
        size = f"median {gaps[len(gaps) // 2]:.4f}, at most {gaps[-1]:.4f}"
        print(f"clusters with a hot node: {len(gaps)}; deviation above the bound: {size}")
        print(f"of these with moves that headroom or a rule bars: {final.barred}")
    return 1 if total.broken else 0


def run(seed: int) -> tuple[History, Final]:
    """Something changes before every fifth cycle; in between, the strategies are to come to rest.

    Raises: AssertionError should a node ever be over-committed.
    """
    random = Random(seed)
    strategies = _strategies()
    simulated = SimulatedCluster(_generated(random))
    moved: dict[str, list[datetime]] = {}
    restless = early = rejected = 0
    was_calm = False
    for number in range(CYCLES):
        if number % _CYCLES_PER_CHANGE == 0:
            _change(simulated, random, number)
            simulated.advance(_BOOT_SECONDS)
            was_calm = False
        events: list[Event] = []
        plan = run_cycle(simulated, strategies, _CONTEXT, events.append).plan
        created = [event for event in events if event.code == "created"]
        restless += was_calm and bool(created)
        rejected += _is_rejected(plan)
        early += _early(created, moved)
        for event in created:
            moved.setdefault(event.subject, []).append(event.at)
        was_calm = not created
        simulated.advance(_CYCLE_SECONDS)
    counts = [len(times) for times in moved.values()]
    history = History(1, CYCLES, sum(counts), restless, early, rejected, max(counts, default=0))
    return history, _final(simulated.read(), strategies)


def _final(snapshot: Snapshot, strategies: list[ActiveStrategy]) -> Final:
    goals = make_plan(snapshot, strategies, _CONTEXT).goals
    names = (
        f"{goal.strategy} {goal.subject.kind} {goal.verdict.value}"
        f"{', proven' if goal.proven else ''}"
        for goal in goals
    )
    balance = _balance(snapshot)
    if balance is None:
        return Final(Counter(names), (), 0)
    moves = even_out(balance).moves
    return Final(Counter(names), (balance.value - least_measure(balance, moves),), bool(moves))


def _balance(snapshot: Snapshot) -> SpreadProblem | None:
    """None where no node is hot."""
    settings = SpreadHeadroomSettings.model_validate(_SETTINGS["SpreadHeadroom"]).balance
    view = View.of(snapshot, _CONTEXT)
    load = load_of(settings, view)
    return balance_problem(load, settings, view) if load.is_hot else None


def _is_rejected(plan: Plan) -> bool:
    return any(reason.code == "plan-rejected" for goal in plan.goals for reason in goal.reasons)


def _early(created: list[Event], moved: dict[str, list[datetime]]) -> int:
    """What a VM on a detour does within one cycle counts as one."""
    cooldown = timedelta(seconds=_COOLDOWN_SECONDS)
    first = {event.subject: event.at for event in reversed(created)}
    return sum(at - moved[vm][-1] < cooldown for vm, at in first.items() if vm in moved)


def _strategies() -> list[ActiveStrategy]:
    installed = load_strategies()
    return [
        ActiveStrategy(
            installed[name], Mode.AUTOMATIC, installed[name].settings_type.model_validate(settings)
        )
        for name, settings in _SETTINGS.items()
    ]


def _generated(random: Random) -> Snapshot:
    """Nodes of three sizes in two zones, filled differently."""
    nodes = [
        node(f"n{i}", memory=f"{random.choice((24, 32, 48))}Gi", labels={ZONE: f"z{i % 2}"})
        for i in range(random.randint(4, 8))
    ]
    launched: list[Launched] = []
    for each in nodes:
        left = random.uniform(0.3, 0.95) * each.allocatable["memory"] / 2**30
        while (gib := random.choice(_SIZES_GIB)) <= left:
            launched.append(_running(random, f"vm{len(launched)}", gib, each.name))
            left -= gib
    return cluster(nodes, launched)


def _running(random: Random, name: str, gib: int, on: str) -> Launched:
    tie = {HOSTNAME: on} if random.random() < _SHARE_TIED else {}
    priority = random.choice((0, 0, 0, 1000))
    return vm(name, on=on, memory=f"{gib}Gi", node_selector=tie, priority=priority)


def _change(simulated: SimulatedCluster, random: Random, number: int) -> None:
    """VMs start and stop, and nodes are drained, cordoned and opened again."""
    for count in range(random.randint(1, 3)):
        snapshot = simulated.read()
        some_node = random.choice(snapshot.nodes)
        running = [vmi for vmi in snapshot.vmis if not vmi.is_terminating]
        match random.choice(("start", "start", "stop", "drain", "cordon", "open")):
            case "start":
                gib = random.choice(_SIZES_GIB)
                simulated.start_vmi(*pending_vm(f"new{number}-{count}", f"{gib}Gi"))
            case "stop" if running:
                simulated.delete_vmi(random.choice(running).key)
            case "drain":
                sign = "label rebalancer/drain"
                simulated.put_node(replace(some_node, drain_sign=sign, is_unschedulable=True))
            case "cordon":
                simulated.cordon(some_node.name)
            case "open":
                for each in snapshot.nodes:
                    simulated.put_node(replace(each, drain_sign="", is_unschedulable=False))


if __name__ == "__main__":
    sys.exit(main())
