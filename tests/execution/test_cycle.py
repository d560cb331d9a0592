"""Whole cycles on the simulated cluster: what is done, in which order, and how it ends."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rebalancer.cluster.simulated import SimulatedCluster
from rebalancer.cluster.simulation.scripts import Fail, Stall
from rebalancer.errors import ClusterError, RefusedError
from rebalancer.execution.events import Event
from rebalancer.loop import CycleResult, run_cycle
from rebalancer.model.measured_load import MeasuredLoad
from rebalancer.model.objects import MigrationConfiguration
from rebalancer.model.plan import Refusal
from rebalancer.planner import ActiveStrategy
from rebalancer.planning.context import PlanningContext
from rebalancer.policy.model import BudgetPolicy, ExecutionPolicy, HoldKind, HoldPolicy, Mode
from rebalancer_strategies.fit_pending_vms import STRATEGY
from rebalancer_strategies.fit_pending_vms.settings import FitPendingVMsSettings
from tests.builders import NOW, Thing, cluster, key, node, pending_vm, pod, vm

FIT = (ActiveStrategy(STRATEGY, Mode.AUTOMATIC, FitPendingVMsSettings()),)


def simulate(*things: Thing) -> SimulatedCluster:
    return SimulatedCluster(cluster(*things))


def cycle(
    simulated: SimulatedCluster,
    events: list[Event] | None = None,
    execution: ExecutionPolicy | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> CycleResult:
    context = PlanningContext(execution=execution or ExecutionPolicy())
    listener = events.append if events is not None else lambda _: None
    return run_cycle(simulated, FIT, context, listener, should_stop)


def codes(events: list[Event]) -> list[str]:
    return [event.code for event in events if event.code != "phase"]


def endings(result: CycleResult) -> dict[str, str]:
    return {outcome.subject.name: outcome.ending.value for outcome in result.outcomes}


def one_move_away() -> tuple[Thing, ...]:
    """a or b may leave n1 for n2; then p fits on n1."""
    return (
        node("n1", memory="16Gi"),
        node("n2", memory="16Gi"),
        vm("a", on="n1", memory="4Gi"),
        vm("b", on="n1", memory="5Gi"),
        pod("fixed", on="n2", memory="7Gi"),
        pending_vm("p", "11Gi"),
    )


def test_a_cycle_ends_when_the_pending_vm_is_bound() -> None:
    simulated = simulate(*one_move_away())
    events: list[Event] = []
    result = cycle(simulated, events)
    assert endings(result) == {"p": "bound"}
    assert codes(events) == ["planned", "held", "created", "succeeded", "bound"]
    assert simulated.read().vmi_by_key[key("a")].node_name == "n2"


def test_without_measured_load_a_pending_vm_is_helped_all_the_same() -> None:
    load = MeasuredLoad(NOW, "cpu", problem="no answer from Prometheus")
    simulated = SimulatedCluster(replace(cluster(*one_move_away()), measured_load=load))
    events: list[Event] = []
    assert endings(cycle(simulated, events)) == {"p": "bound"}
    assert codes(events)[:2] == ["load-missing", "planned"]
    assert (events[0].subject, events[0].message) == ("snapshot", "no answer from Prometheus")


def test_a_second_cycle_does_nothing() -> None:
    simulated = simulate(*one_move_away())
    cycle(simulated)
    before = simulated.read()
    events: list[Event] = []
    cycle(simulated, events)
    assert codes(events) == ["planned"]
    assert simulated.read().migrations == before.migrations


def test_moves_that_wait_for_room_start_only_when_it_is_there() -> None:
    """c leaves n2 before a may take its place; nothing waits for anything else."""
    simulated = simulate(
        node("n1", memory="16Gi", labels={"zone": "a"}),
        node("n2", memory="16Gi"),
        node("n3", memory="5Gi"),
        vm("a", on="n1", memory="12Gi"),
        vm("c", on="n2", memory="5Gi"),
        pending_vm("p", "8Gi", node_selector={"zone": "a"}),
    )
    events: list[Event] = []
    result = cycle(simulated, events)
    assert endings(result) == {"p": "bound"}
    created = [e.subject for e in events if e.code in {"created", "succeeded"}]
    assert created == ["default/c", "default/c", "default/a", "default/a"]
    held = [e.message for e in events if e.code == "held"]
    assert held == ["node n1 is held", "node n2 is held"]


def test_room_on_the_way_is_kept_from_newcomers_as_well() -> None:
    """c leaves n2 for a; a newcomer that would fit into c's place must not get it."""
    simulated = simulate(
        node("n1", memory="16Gi", labels={"zone": "a"}),
        node("n2", memory="16Gi"),
        node("n3", memory="5Gi"),
        vm("a", on="n1", memory="12Gi"),
        vm("c", on="n2", memory="5Gi"),
        pending_vm("p", "8Gi", node_selector={"zone": "a"}),
    )
    thief = pod("thief", memory="12Gi", node_selector={"kubernetes.io/hostname": "n2"})
    simulated.at(1, lambda: simulated.add_pod(thief))
    assert endings(cycle(simulated)) == {"p": "bound"}
    assert simulated.read().pod_by_key[thief.key].node_name is None


def test_a_lock_whose_lifetime_is_over_is_cleared_and_made_anew() -> None:
    simulated = simulate(*one_move_away())
    events: list[Event] = []
    cycle(simulated, events, should_stop=lambda: "held" in codes(events))
    simulated.advance(timedelta(days=1).total_seconds())
    assert endings(cycle(simulated, events)) == {"p": "bound"}
    assert "hold-cleared" in codes(events)


def test_the_outbound_limit_of_the_kubevirt_cr_makes_moves_take_turns() -> None:
    simulated = simulate(
        node("n1", memory="16Gi"),
        node("n2", memory="16Gi"),
        vm("a", on="n1", memory="4Gi"),
        vm("b", on="n1", memory="4Gi"),
        pod("fixed-1", on="n1", memory="6Gi"),
        pod("fixed-2", on="n2", memory="8Gi"),
        MigrationConfiguration(parallel_outbound_migrations_per_node=1),
        pending_vm("p", "9Gi"),
    )
    events: list[Event] = []
    assert endings(cycle(simulated, events)) == {"p": "bound"}
    assert codes(events)[2:] == ["created", "waits", "succeeded", "created", "succeeded", "bound"]


def test_a_goal_that_the_cycles_budget_cannot_finish_is_not_begun() -> None:
    simulated = simulate(
        node("n1", memory="16Gi"),
        node("n2", memory="16Gi"),
        vm("a", on="n1", memory="4Gi"),
        vm("b", on="n1", memory="4Gi"),
        pod("fixed-1", on="n1", memory="6Gi"),
        pod("fixed-2", on="n2", memory="8Gi"),
        pending_vm("p", "9Gi"),
    )
    budget = BudgetPolicy(max_per_cycle=1)
    result = cycle(simulated, execution=ExecutionPolicy(budget=budget))
    assert endings(result) == {"p": "not-started"}
    assert "maxPerCycle (1)" in result.outcomes[0].message
    assert simulated.read().migrations == ()


def test_after_a_failure_the_other_vm_is_moved_in_the_same_cycle() -> None:
    simulated = simulate(*one_move_away())
    simulated.script_migrations(key("a"), Fail("unable to connect"))
    events: list[Event] = []
    assert endings(cycle(simulated, events)) == {"p": "bound"}
    assert [(m.vmi_name, m.phase) for m in simulated.read().migrations] == [
        ("a", "Failed"),
        ("b", "Succeeded"),
    ]
    assert any("unable to connect" in event.message for event in events if event.code == "failed")


def test_a_refused_migration_is_one_failed_step_and_its_vm_is_avoided() -> None:
    """kubevirt/kubevirt#2652"""
    simulated = simulate(*one_move_away())
    refusal = RefusedError("another is under way", "migration-in-flight")
    simulated.fail_next("create_migration", refusal)
    events: list[Event] = []
    result = cycle(simulated, events)
    assert endings(result) == {"p": "bound"}
    assert [m.vmi_name for m in simulated.read().migrations] == ["b"]
    expected = Refusal(key("a"), "migration-in-flight", "another is under way")
    assert result.outcomes[0].refused == (expected,)
    (told,) = (event.message for event in events if event.code == "refused")
    assert told.endswith("of VM default/a was refused (migration-in-flight): another is under way")


def test_what_bars_every_migration_ends_the_goal_instead_of_trying_vm_by_vm() -> None:
    simulated = simulate(*one_move_away())
    refusal = RefusedError("no answer", "webhook-unavailable", concerns_all=True)
    simulated.fail_next("create_migration", refusal)
    events: list[Event] = []
    result = cycle(simulated, events)
    assert endings(result) == {"p": "not-started"}
    assert codes(events) == ["planned", "held", "refused", "not-started"]
    assert result.outcomes[0].refused == ()
    assert simulated.read().migrations == ()


def test_what_bars_every_migration_in_the_middle_of_a_plan_drops_the_rest() -> None:
    simulated = simulate(
        node("n1", memory="16Gi", labels={"zone": "a"}),
        node("n2", memory="16Gi"),
        node("n3", memory="5Gi"),
        vm("a", on="n1", memory="12Gi"),
        vm("c", on="n2", memory="5Gi"),
        pending_vm("p", "8Gi", node_selector={"zone": "a"}),
    )
    refusal = RefusedError("no answer", "webhook-unavailable", concerns_all=True)
    simulated.at(1, lambda: simulated.fail_next("create_migration", refusal))
    events: list[Event] = []
    assert endings(cycle(simulated, events)) == {"p": "bound"}
    assert codes(events)[3:7] == ["created", "succeeded", "refused", "dropped"]
    assert codes(events)[7:] == ["planned", "held", "created", "succeeded", "bound"]


@pytest.mark.parametrize("after_effect", [True, False], ids=["created", "not created"])
def test_a_create_without_an_answer_leads_to_one_migration(after_effect: bool) -> None:
    simulated = simulate(*one_move_away())
    simulated.fail_next("create_migration", ClusterError("no answer"), after_effect=after_effect)
    assert endings(cycle(simulated)) == {"p": "bound"}
    assert [m.vmi_name for m in simulated.read().migrations] == ["a"]


@pytest.mark.parametrize("after_effect", [True, False], ids=["created", "not created"])
def test_a_hold_without_an_answer_is_found_or_made_again(after_effect: bool) -> None:
    simulated = simulate(*one_move_away())
    simulated.fail_next("create_hold", ClusterError("no answer"), after_effect=after_effect)
    assert endings(cycle(simulated)) == {"p": "bound"}
    assert not [p for p in simulated.read().pods if p.name.startswith("hold-")]


def test_a_hold_that_is_refused_starts_nothing() -> None:
    simulated = simulate(*one_move_away())
    simulated.fail_next("create_hold", RefusedError('namespaces "x" not found'))
    result = cycle(simulated)
    assert endings(result) == {"p": "not-started"}
    assert simulated.read().migrations == ()


def test_without_a_hold_no_lock_pod_is_made() -> None:
    simulated = simulate(*one_move_away())
    execution = ExecutionPolicy(hold=HoldPolicy(kind=HoldKind.NONE))
    assert endings(cycle(simulated, execution=execution)) == {"p": "bound"}
    assert not any("lock pod" in entry.what for entry in simulated.journal)


def test_a_stalled_migration_is_planned_around() -> None:
    limits = MigrationConfiguration(
        completion_timeout_seconds_per_gib=10, progress_timeout_seconds=10
    )
    simulated = simulate(*one_move_away(), limits)
    simulated.script_migrations(key("a"), Stall())
    assert endings(cycle(simulated)) == {"p": "bound"}
    assert [(m.vmi_name, m.phase) for m in simulated.read().migrations] == [
        ("a", "Running"),
        ("b", "Succeeded"),
    ]


def test_a_target_that_was_cordoned_since_stops_the_plan_before_its_migration() -> None:
    simulated = simulate(*one_move_away())
    events: list[Event] = []

    def cordon_once_held(event: Event) -> None:
        events.append(event)
        if event.code == "held":
            simulated.cordon("n2")

    result = run_cycle(simulated, FIT, PlanningContext(), cordon_once_held)
    assert "n2 no longer takes VM default/a: node is cordoned" in str(events)
    assert simulated.read().migrations == ()
    assert [str(subject) for subject in result.unmet()] == ["default/p"]


def test_a_newcomer_on_the_landing_node_stops_the_plan_before_its_migration() -> None:
    simulated = simulate(*one_move_away())
    events: list[Event] = []

    def arrive_once_planned(event: Event) -> None:
        events.append(event)
        if event.code == "planned" and len(events) == 1:
            simulated.add_pod(
                pod("newcomer", memory="6Gi", node_selector={"kubernetes.io/hostname": "n1"})
            )

    run_cycle(simulated, FIT, PlanningContext(), arrive_once_planned)
    assert "default/p would no longer fit on n1" in str(events)


def test_when_the_lead_is_lost_nothing_more_is_started() -> None:
    simulated = simulate(*one_move_away())

    def usurp(event: Event) -> None:
        if event.code == "held":
            simulated.revoke_leadership()

    result = run_cycle(simulated, FIT, PlanningContext(), usurp)
    assert endings(result) == {"p": "dropped"}
    assert "another rebalancer" in result.outcomes[0].message
    assert simulated.read().migrations == ()


def test_what_was_in_flight_when_told_to_stop_is_adopted_by_the_next_cycle() -> None:
    simulated = simulate(*one_move_away())
    events: list[Event] = []
    stopped = cycle(simulated, events, should_stop=lambda: "created" in codes(events))
    assert stopped.outcomes == ()
    simulated.advance(1)
    assert endings(cycle(simulated)) == {"p": "bound"}
    snapshot = simulated.read()
    assert [m.vmi_name for m in snapshot.migrations] == ["a"]
    assert not [p for p in snapshot.pods if p.name.startswith("hold-")]


def test_a_hold_of_a_vm_that_is_gone_is_cleared() -> None:
    simulated = simulate(*one_move_away())
    events: list[Event] = []
    cycle(simulated, events, should_stop=lambda: "held" in codes(events))
    simulated.delete_vmi(key("p"))
    simulated.advance(60)
    cycle(simulated)
    assert not [p for p in simulated.read().pods if p.name.startswith("hold-")]


def test_a_hold_that_was_preempted_is_made_again() -> None:
    simulated = simulate(*one_move_away())
    important = pod("important", memory="0", priority=1000)
    pinned = replace(important, node_selector={"kubernetes.io/hostname": "n1"})
    simulated.at(5, lambda: simulated.add_pod(pinned))
    events: list[Event] = []
    assert endings(cycle(simulated, events)) == {"p": "bound"}
    assert codes(events).count("held") == 2
    assert simulated.read().pod_by_key[pinned.key].node_name == "n1"


def test_more_important_vms_are_served_first_and_the_others_after_them() -> None:
    """Room for both can be made, on one node each, by different moves."""
    simulated = simulate(
        node("n1", memory="16Gi"),
        node("n2", memory="16Gi"),
        node("n3", memory="16Gi"),
        vm("a", on="n1", memory="5Gi"),
        vm("b", on="n2", memory="6Gi"),
        pod("fixed-3", on="n3", memory="5Gi"),
        pending_vm("low", "12Gi", priority=1),
        pending_vm("high", "12Gi", priority=9),
    )
    result = cycle(simulated, execution=ExecutionPolicy(cooldown_seconds=0))
    assert endings(result) == {"high": "bound", "low": "bound"}


def test_recommend_changes_nothing() -> None:
    simulated = simulate(*one_move_away())
    fit = ActiveStrategy(STRATEGY, Mode.RECOMMEND, FitPendingVMsSettings())
    result = run_cycle(simulated, [fit], PlanningContext(), lambda _: None)
    assert len(result.plan.moves) == 1
    assert simulated.read().migrations == ()


@st.composite
def clusters(draw: st.DrawFn) -> SimulatedCluster:
    """Two to four nodes, up to eight VMs where they fit, one or two that wait."""
    count = draw(st.integers(2, 4))
    room = {f"n{i}": draw(st.integers(8, 16)) for i in range(count)}
    things: list[Thing] = [node(name, memory=f"{gib}Gi") for name, gib in room.items()]
    for number in range(draw(st.integers(0, 8))):
        size = draw(st.integers(1, 6))
        on = draw(st.sampled_from(sorted(room)))
        if room[on] >= size:
            room[on] -= size
            things.append(vm(f"vm{number}", on=on, memory=f"{size}Gi"))
    for number in range(draw(st.integers(1, 2))):
        things.append(pending_vm(f"p{number}", f"{draw(st.integers(3, 14))}Gi"))
    return simulate(*things)


@settings(max_examples=60)
@given(clusters())
def test_a_cycle_never_overfills_a_node_and_the_one_after_it_moves_nothing(
    simulated: SimulatedCluster,
) -> None:
    """The simulated cluster raises if a node is ever overfilled. Between cycles more time passes
    than a VM is left alone for that has been moved.
    """
    cycle(simulated)
    simulated.advance(timedelta(minutes=15).total_seconds())
    cycle(simulated)
    simulated.advance(timedelta(minutes=15).total_seconds())
    before = simulated.read()
    cycle(simulated)
    after = simulated.read()
    assert after.migrations == before.migrations
    assert replace(after, taken_at=before.taken_at).pods == before.pods
