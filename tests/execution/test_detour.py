"""A VM that steps aside and goes on, carried out on the simulated cluster."""

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rebalancer.cluster.simulated import SimulatedCluster
from rebalancer.cluster.simulation.scripts import Fail
from rebalancer.execution.events import Event
from rebalancer.execution.recheck import surprise, unsettled
from rebalancer.loop import CycleResult, run_cycle
from rebalancer.model.objects import MigrationConfiguration
from rebalancer.model.plan import Move, Plan
from rebalancer.model.snapshot import Snapshot
from rebalancer.planner import ActiveStrategy, make_plan
from rebalancer.planning.context import PlanningContext
from rebalancer.policy.model import ExecutionPolicy, Mode
from rebalancer_strategies.fit_pending_vms import STRATEGY
from rebalancer_strategies.fit_pending_vms.settings import FitPendingVMsSettings
from tests.builders import Thing, cluster, key, node, pending_vm, vm

FIT = (ActiveStrategy(STRATEGY, Mode.AUTOMATIC, FitPendingVMsSettings()),)


def crowded(*others: Thing) -> Snapshot:
    """p needs all of n1, so c must leave it for n2, where it has room once a and b have changed
    places; b can let a pass on n1, before p arrives there.
    """
    yes = dict.fromkeys
    return cluster(
        node("n1", memory="4Gi", labels=yes(["for-p", "for-b"], "yes")),
        node("n2", memory="4Gi", labels=yes(["for-a", "for-b", "for-c"], "yes")),
        node("n3", memory="4Gi", labels=yes(["for-a", "for-b"], "yes")),
        vm("a", on="n2", memory="3Gi", node_selector={"for-a": "yes"}),
        vm("b", on="n3", memory="2Gi", node_selector={"for-b": "yes"}),
        vm("c", on="n1", memory="2Gi", node_selector={"for-c": "yes"}),
        pending_vm("p", "4Gi", node_selector={"for-p": "yes"}),
        *others,
    )


def plan_of(snapshot: Snapshot) -> Plan:
    return make_plan(snapshot, FIT, PlanningContext())


def cycle(simulated: SimulatedCluster, events: list[Event] | None = None) -> CycleResult:
    listener = events.append if events is not None else lambda _: None
    return run_cycle(simulated, FIT, PlanningContext(), listener)


def places(simulated: SimulatedCluster) -> dict[str, str | None]:
    """Where the launcher pods are."""
    snapshot = simulated.read()
    pods = {vmi.name: snapshot.pod_of_vmi(vmi) for vmi in snapshot.vmis}
    return {name: pod.node_name if pod else None for name, pod in pods.items()}


def test_the_plan_moves_one_vm_twice_and_is_proven() -> None:
    plan = plan_of(crowded())
    assert [(m.id, m.source, m.target, m.after) for m in plan.moves] == [
        ("default/b", "n3", "n1", ()),
        ("default/a", "n2", "n3", ("default/b",)),
        ("default/c", "n1", "n2", ("default/a",)),
        ("default/b#2", "n1", "n2", ("default/b", "default/a")),
    ]
    assert plan.goals[0].proven
    assert plan.goals[0].cost == sum(move.cost.total for move in plan.moves) == 112.0
    assert plan.estimated_seconds == 16 + 24 + 16


def test_it_is_carried_out_and_a_second_cycle_does_nothing() -> None:
    simulated = SimulatedCluster(crowded())
    cycle(simulated)
    assert places(simulated) == {"a": "n3", "b": "n2", "c": "n2", "p": "n1"}
    before = simulated.read()
    assert [m.phase for m in before.migrations] == ["Succeeded"] * 4
    assert cycle(simulated).plan.moves == ()
    assert simulated.read().migrations == before.migrations


def test_every_node_on_the_way_is_held_until_the_pending_vm_is_bound() -> None:
    events: list[Event] = []
    cycle(SimulatedCluster(crowded()), events)
    held = {event.message for event in events if event.code == "held"}
    assert held == {f"node {name} is held" for name in ("n1", "n2", "n3")}


def test_one_migration_at_a_time_is_enough() -> None:
    simulated = SimulatedCluster(crowded(MigrationConfiguration(parallel_migrations_per_cluster=1)))
    cycle(simulated)
    assert places(simulated)["p"] == "n1"


def test_what_was_interrupted_on_a_detour_is_finished_once_the_vm_may_move_again() -> None:
    """The next run knows nothing of the plan: a VM that has just moved is left in peace first."""
    simulated = SimulatedCluster(crowded())
    events: list[Event] = []
    run_cycle(
        simulated,
        FIT,
        PlanningContext(),
        events.append,
        should_stop=lambda: "succeeded" in [event.code for event in events],
    )
    assert places(simulated)["b"] == "n1"
    simulated.advance(ExecutionPolicy().cooldown_seconds)
    cycle(simulated)
    assert places(simulated) == {"a": "n3", "b": "n2", "c": "n2", "p": "n1"}
    assert len(simulated.read().migrations) == 4


def test_a_detour_that_fails_halfway_leaves_every_vm_running_where_it_is() -> None:
    simulated = SimulatedCluster(crowded())
    simulated.script_migrations(key("a"), Fail("unable to connect"))
    result = cycle(simulated)
    assert [str(subject) for subject in result.unmet()] == ["default/p"]
    assert places(simulated) == {"a": "n2", "b": "n1", "c": "n1", "p": None}
    assert not [p for p in simulated.read().pods if p.name.startswith("hold-")]


@st.composite
def tight_clusters(draw: st.DrawFn) -> SimulatedCluster:
    """Full nodes, and VMs that each may go to some of them: now and then one must step aside."""
    sizes = {name: draw(st.integers(2, 5)) for name in "abcd"}
    on = {name: draw(st.sampled_from(["n2", "n3"])) for name in "abd"} | {"c": "n1"}
    spare = {"n1": draw(st.integers(2, 4)), "n2": draw(st.integers(0, 2)), "n3": 1}
    things: list[Thing] = []
    for place, room in spare.items():
        memory = room + sum(size for name, size in sizes.items() if on[name] == place)
        labels = {f"for-{name}": "yes" for name in sizes if draw(st.booleans())}
        labels |= {"for-p": "yes"} if place == "n1" else {}
        things.append(node(place, memory=f"{memory}Gi", labels=labels))
    things += [
        vm(name, on=on[name], memory=f"{size}Gi", node_selector={f"for-{name}": "yes"})
        for name, size in sizes.items()
    ]
    wanted = sizes["c"] + spare["n1"]
    return SimulatedCluster(
        cluster(*things, pending_vm("p", f"{wanted}Gi", node_selector={"for-p": "yes"}))
    )


@settings(max_examples=60, deadline=None)
@given(tight_clusters())
def test_a_plan_is_always_carried_out_and_the_cycle_after_it_moves_nothing(
    simulated: SimulatedCluster,
) -> None:
    """The simulated cluster raises if a node is ever overfilled."""
    planned = plan_of(simulated.read())
    cycle(simulated)
    before = simulated.read()
    assert (places(simulated)["p"] == "n1") == bool(planned.moves)
    assert len(before.migrations) == len(planned.moves)
    simulated.advance(ExecutionPolicy().cooldown_seconds)
    assert cycle(simulated).plan.moves == ()
    assert simulated.read().migrations == before.migrations


def aside() -> tuple[Snapshot, tuple[Move, ...]]:
    """The state when b has stepped aside, and the moves."""
    simulated = SimulatedCluster(crowded())
    moves = plan_of(simulated.read()).moves
    events: list[Event] = []
    run_cycle(
        simulated,
        FIT,
        PlanningContext(),
        events.append,
        should_stop=lambda: "succeeded" in [event.code for event in events],
    )
    return simulated.read(), moves


def test_the_cooldown_of_a_vm_does_not_stop_it_on_its_detour() -> None:
    snapshot, moves = aside()
    goal = plan_of(crowded()).goals[0]
    alone = replace(moves[3], after=())
    reason = surprise(alone, goal, moves, snapshot, PlanningContext())
    assert reason is not None
    assert "cooldownSeconds" in reason
    on = replace(moves[3], after=("default/b",))
    assert "cooldownSeconds" not in str(surprise(on, goal, moves, snapshot, PlanningContext()))


def test_a_move_waits_until_the_pod_that_was_left_has_ended() -> None:
    snapshot, moves = aside()
    assert unsettled(moves[1], moves, snapshot) is None
    (left,) = (p for p in crowded().pods if p.vmi_uid == "vmi-b")
    lingering = replace(snapshot, pods=(*snapshot.pods, replace(left, name="lingering")))
    wanted = "pod default/lingering has not ended on n3 yet"
    assert unsettled(moves[1], moves, lingering) == wanted
    assert unsettled(moves[3], moves, lingering) == wanted
    assert unsettled(moves[0], moves, lingering) is None
