"""Nodes emptied on the simulated cluster: in parts, beside others, called off half-way."""

from contextlib import AbstractContextManager
from typing import Any

from rebalancer.cluster.protocols import Leadership
from rebalancer.cluster.simulated import SimulatedCluster
from rebalancer.cluster.simulation.scripts import Fail
from rebalancer.execution.events import Event
from rebalancer.loop import CycleResult, run_cycle, run_cycles
from rebalancer.planning.context import PlanningContext
from rebalancer.policy.model import BudgetPolicy, ExecutionPolicy
from rebalancer_strategies.consolidate_for_drain import STRATEGY
from rebalancer_strategies.spread_headroom import STRATEGY as SPREAD
from tests.builders import Thing, cluster, key, node, pod, vm
from tests.strategies.decisions import automatic

MARKED: dict[str, Any] = {"drain_sign": "label rebalancer/drain", "is_unschedulable": True}


def simulate(*things: Thing) -> SimulatedCluster:
    n1 = node("n1", memory="64Gi", **MARKED)
    return SimulatedCluster(cluster(n1, node("n2", memory="64Gi"), *things))


def cycle(
    simulated: SimulatedCluster,
    events: list[Event] | None = None,
    budget: BudgetPolicy | None = None,
) -> CycleResult:
    execution = ExecutionPolicy(budget=budget or BudgetPolicy())
    listener = events.append if events is not None else lambda _: None
    return run_cycle(
        simulated, [automatic(STRATEGY)], PlanningContext(execution=execution), listener
    )


def on(simulated: SimulatedCluster, name: str) -> set[str]:
    return {vmi.name for vmi in simulated.read().vmis if vmi.node_name == name}


def small(name: str) -> Thing:
    return vm(name, on="n1", memory="8Gi")


def endings(result: CycleResult) -> dict[str, str]:
    return {outcome.subject.name: outcome.message for outcome in result.outcomes}


def test_a_node_with_a_sign_is_emptied_and_then_left_alone() -> None:
    simulated = simulate(small("a"), small("b"))
    first = cycle(simulated)
    assert on(simulated, "n1") == set()
    assert endings(first) == {"n1": "migrations done: 2"}
    assert not first.unmet()
    assert cycle(simulated).outcomes == ()


def test_room_is_made_elsewhere_for_a_vm_that_must_leave() -> None:
    simulated = SimulatedCluster(
        cluster(
            node("n1", memory="16Gi", **MARKED),
            node("n2", memory="16Gi"),
            node("n3", memory="16Gi"),
            vm("big", on="n1", memory="12Gi"),
            vm("s", on="n2", memory="6Gi"),
            pod("fixed", on="n3", memory="8Gi"),
        )
    )
    events: list[Event] = []
    result = cycle(simulated, events)
    assert not result.unmet()
    assert on(simulated, "n2") == {"big"}
    assert on(simulated, "n3") == {"s"}
    assert "node n2 is held" in [event.message for event in events if event.code == "held"]
    assert not [
        p for p in simulated.read().pods if p.name.startswith("hold-") and not p.is_terminating
    ]


def test_a_mover_that_could_preempt_at_its_target_has_that_node_held() -> None:
    """Else, were its room taken just before it comes, the scheduler would make room for it."""
    simulated = simulate(
        vm("important", on="n1", memory="8Gi", priority=1000, priority_class_name="high"),
        vm("humble", on="n2", memory="8Gi"),
    )
    events: list[Event] = []
    result = cycle(simulated, events)
    assert not result.unmet()
    assert [event.message for event in events if event.code == "held"] == ["node n2 is held"]


def test_a_vm_that_vanishes_while_its_target_is_held_ends_the_plan_in_order() -> None:
    simulated = simulate(
        vm("important", on="n1", memory="8Gi", priority=1000, priority_class_name="high"),
        vm("humble", on="n2", memory="8Gi"),
    )
    simulated.at(20, lambda: simulated.delete_vmi(key("important")))
    assert endings(cycle(simulated))["n1"].startswith("migration rebalancer-important")
    simulated.advance(60)
    assert not cycle(simulated).unmet()


def test_a_mover_that_could_preempt_nobody_goes_without_a_hold() -> None:
    simulated = simulate(small("a"), vm("other", on="n2", memory="8Gi"))
    events: list[Event] = []
    cycle(simulated, events)
    assert not [event for event in events if event.code == "held"]


def test_a_drain_larger_than_a_cycles_budget_goes_on_in_the_next_cycle() -> None:
    simulated = simulate(*(small(f"v{i}") for i in range(5)))
    budget = BudgetPolicy(max_per_cycle=3)
    first = cycle(simulated, budget=budget)
    assert len(on(simulated, "n1")) == 2
    assert endings(first) == {"n1": "migrations done: 3; 2 more follow in a later cycle"}
    assert first.unmet()
    assert not cycle(simulated, budget=budget).unmet()
    assert on(simulated, "n1") == set()


class Lease:
    """Counts how often it is taken."""

    def __init__(self, simulated: SimulatedCluster) -> None:
        self.taken = 0
        self._acquire = simulated.leadership
        simulated.leadership = self._counted  # type: ignore[method-assign]

    def _counted(self) -> AbstractContextManager[Leadership]:
        self.taken += 1
        return self._acquire()


def test_all_cycles_of_one_drain_are_made_under_one_lease() -> None:
    simulated = simulate(*(small(f"v{i}") for i in range(5)))
    lease = Lease(simulated)
    result = run_cycles(simulated, [automatic(STRATEGY)], two_a_cycle(), lambda _: None)
    assert lease.taken == 1
    assert not result.unmet()
    assert [outcome.migrations for outcome in result.outcomes] == [5]


def test_a_drain_that_loses_the_lease_says_so_and_begins_no_further_cycle() -> None:
    simulated = simulate(*(small(f"v{i}") for i in range(5)))
    events: list[Event] = []

    def usurp_after_the_first_cycle(event: Event) -> None:
        events.append(event)
        if event.code == "partly-done":
            simulated.revoke_leadership()

    strategies = [automatic(STRATEGY)]
    result = run_cycles(simulated, strategies, two_a_cycle(), usurp_after_the_first_cycle)
    assert events[-1].code == "lease-lost"
    assert result.unmet()
    assert len(on(simulated, "n1")) == 3


def two_a_cycle() -> PlanningContext:
    return PlanningContext(execution=ExecutionPolicy(budget=BudgetPolicy(max_per_cycle=2)))


def test_nothing_more_starts_once_the_drain_is_called_off() -> None:
    simulated = simulate(*(small(f"v{i}") for i in range(6)))

    def listener(event: Event) -> None:
        if event.code == "succeeded":
            simulated.put_node(node("n1", memory="64Gi"))

    result = run_cycle(simulated, [automatic(STRATEGY)], PlanningContext(), listener)
    assert on(simulated, "n1")
    assert not result.plan.goals


def test_a_failed_migration_leaves_the_others_and_is_told() -> None:
    simulated = simulate(small("a"), small("b"))
    simulated.script_migrations(key("a"), Fail())
    result = cycle(simulated)
    assert on(simulated, "n1") == {"a"}
    assert result.unmet()
    assert any("last 1 migration failed" in r.message for r in result.plan.goals[0].reasons)


def test_balance_moves_no_more_vms_in_one_cycle_than_its_limit() -> None:
    simulated = SimulatedCluster(
        cluster(
            node("n1", memory="64Gi"),
            node("n2", memory="64Gi"),
            *(vm(f"v{i}", on="n1", memory="4Gi") for i in range(12)),
        )
    )
    balance = {"resources": ["memory"], "onlyAbove": 0.3, "maxMoves": 2}
    spread = automatic(SPREAD, balance=balance, headroom={"failureDomain": "None"})
    run_cycle(simulated, [spread], PlanningContext(), lambda _: None)
    assert len(on(simulated, "n2")) == 2
    run_cycle(simulated, [spread], PlanningContext(), lambda _: None)
    assert len(on(simulated, "n2")) == 4
