"""The simulated cluster as its users see it: time, lost answers, and what it promises."""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.cluster.protocols import Cluster
from rebalancer.cluster.simulated import SimulatedCluster
from rebalancer.cluster.simulation.agenda import Agenda
from rebalancer.cluster.simulation.scripts import Fail, Request
from rebalancer.cluster.simulation.world import World
from rebalancer.errors import ClusterError, ConflictError, RefusedError
from rebalancer.model.objects import MigrationConfiguration
from rebalancer.model.snapshot import Snapshot
from tests.builders import NOW, cluster, key, node, pending_vm, pod, vm
from tests.cluster.simulation.requests import LOCK, events, hold, message_of, node_of, request


def idle() -> SimulatedCluster:
    return SimulatedCluster(cluster(node("n1"), node("n2"), vm("a", on="n1"), vm("b", on="n2")))


def seconds_passed(simulated: SimulatedCluster) -> float:
    return (simulated.now() - NOW).total_seconds()


def test_it_is_a_cluster_and_starts_as_the_snapshot_has_it() -> None:
    snapshot = cluster(node("n1"), vm("a", on="n1"), pod("b", on="n1"))
    simulated: Cluster = SimulatedCluster(snapshot)
    assert simulated.read() == snapshot
    assert simulated.now() == snapshot.taken_at


def test_what_is_read_bears_the_time_of_the_reading_and_never_changes() -> None:
    simulated = idle()
    before = simulated.read()
    simulated.create_migration(request("m", "a", "n2"))
    simulated.advance(5)
    assert before.migrations == ()
    assert simulated.reread(before, ["n1"], [key("a")]).migrations != ()
    assert simulated.read().taken_at == NOW + timedelta(seconds=5)


def test_waiting_ends_with_the_first_change_to_one_of_the_vms() -> None:
    simulated = idle()
    simulated.at(30, lambda: simulated.add_pod(pod("other")))
    simulated.at(40, lambda: simulated.delete_vmi(key("b")))
    simulated.at(50, lambda: simulated.delete_vmi(key("a")))
    simulated.wait_for_change([key("a")], 600)
    assert seconds_passed(simulated) == 50


def test_waiting_ends_after_the_given_time_when_nothing_changes() -> None:
    simulated = idle()
    simulated.at(11, lambda: simulated.delete_vmi(key("a")))
    simulated.wait_for_change([key("a")], 10)
    assert seconds_passed(simulated) == 10


def test_waiting_ends_at_once_when_something_has_changed_since_the_last_reading() -> None:
    simulated = idle()
    simulated.read()
    simulated.create_migration(request("m", "a", "n2"))
    simulated.wait_for_change([key("a")], 600)
    assert seconds_passed(simulated) == 0
    simulated.wait_for_change([key("a")], 600)
    assert seconds_passed(simulated) == 2


def test_what_a_reading_has_shown_wakes_nobody() -> None:
    simulated = idle()
    simulated.create_migration(request("m", "a", "n2"))
    simulated.read()
    simulated.wait_for_change([key("a")], 600)
    assert seconds_passed(simulated) == 2


def test_all_that_is_due_at_an_instant_happens_in_the_order_it_was_entered() -> None:
    simulated = idle()
    seen: list[str] = []
    simulated.at(20, lambda: seen.append("late"))
    simulated.at(10, lambda: seen.append("first"))
    simulated.at(10, lambda: seen.append("second"))
    simulated.advance(10)
    assert seen == ["first", "second"]


def test_the_pace_is_told_all_the_time_that_passes() -> None:
    passed: list[float] = []
    simulated = SimulatedCluster(
        cluster(node("n1"), node("n2"), vm("a", on="n1", memory="1Gi")), pace=passed.append
    )
    simulated.create_migration(request("m", "a", "n2"))
    simulated.advance(60)
    assert passed == [2, 2, 2, 2, 8, 44]


def test_a_migration_is_in_the_journal_from_its_creation_to_the_beneficiarys_start() -> None:
    simulated = SimulatedCluster(
        cluster(
            node("n1", memory="8Gi"),
            node("n2", memory="8Gi"),
            vm("small", on="n1", memory="4Gi"),
            pending_vm("big", "6Gi"),
            pod("filler", on="n2", memory="4Gi"),
        )
    )
    simulated.create_hold(hold("n1", of="big"))
    simulated.create_migration(request("m", "small", "n2"))
    uid = simulated.read().migrations[0].uid
    target = f"default/virt-launcher-small-{uid[:5]}"
    simulated.advance(100)
    assert events(simulated) == [
        (0, "lock pod rebalancer/lock created on n1"),
        (0, "migration default/m created: VM default/small to n2"),
        (0, "migration default/m is Pending"),
        (0, f"pod {target} created for migration default/m"),
        (0, f"pod {target} bound to n2"),
        (0, "migration default/m is Scheduling"),
        (2, "migration default/m is Scheduled"),
        (4, "migration default/m is PreparingTarget"),
        (6, "migration default/m is TargetReady"),
        (8, "migration default/m is Running"),
        (40, "migration default/m is Succeeded"),
        (40, "pod default/virt-launcher-big bound to n1"),
        (42, "VM default/big is Scheduled on n1"),
        (62, "VM default/big is Running on n1"),
    ]


CALLS: dict[Request, Callable[[SimulatedCluster], object]] = {
    "read": lambda simulated: simulated.read(),
    "reread": lambda simulated: simulated.reread(Snapshot(NOW), [], []),
    "create_migration": lambda simulated: simulated.create_migration(request("m", "a", "n2")),
    "create_hold": lambda simulated: simulated.create_hold(hold("n1", of="a")),
    "delete_hold": lambda simulated: simulated.delete_hold(LOCK),
    "wait_for_change": lambda simulated: simulated.wait_for_change([], 10),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_request_can_be_made_to_fail_once(name: Request) -> None:
    simulated = idle()
    simulated.fail_next(name, ClusterError("no answer"))
    with pytest.raises(ClusterError, match="no answer"):
        CALLS[name](simulated)
    assert (simulated.journal, simulated.now()) == ((), NOW)
    CALLS[name](simulated)


@pytest.mark.parametrize(("after_effect", "migrations"), [(False, 0), (True, 1)])
def test_an_error_comes_before_or_after_the_effect(after_effect: bool, migrations: int) -> None:
    simulated = idle()
    lost = ClusterError("the answer was lost")
    simulated.fail_next("create_migration", lost, after_effect=after_effect)
    with pytest.raises(ClusterError, match="the answer was lost"):
        simulated.create_migration(request("m", "a", "n2"))
    assert len(simulated.read().migrations) == migrations


def test_leadership_is_held_until_it_is_revoked() -> None:
    simulated = idle()
    with simulated.leadership() as leadership:
        assert leadership.is_held()
        simulated.revoke_leadership()
        assert not leadership.is_held()
    with simulated.leadership() as anew:
        assert anew.is_held()


def test_a_node_that_is_over_committed_from_the_start_may_stay_so_but_takes_no_more() -> None:
    simulated = SimulatedCluster(cluster(node("n1", memory="8Gi"), vm("a", on="n1", memory="9Gi")))
    simulated.add_pod(pod("small", memory="1Mi"))
    assert "1 Insufficient memory" in message_of(simulated, "small")


def test_a_node_may_lose_what_its_pods_have_requested() -> None:
    simulated = idle()
    simulated.put_node(node("n1", memory="1Gi"))
    simulated.add_pod(pod("new", memory="512Mi"))
    assert node_of(simulated, "new") == "n2"


def test_a_pod_that_no_node_of_its_name_has_room_for_fails() -> None:
    simulated = idle()
    simulated.add_pod(pod("huge", on="n1", memory="64Gi"))
    assert simulated.read().pod_by_key[key("huge")].phase == "Failed"


def test_an_over_committed_node_is_an_error_with_its_figures() -> None:
    snapshot = cluster(node("n1", memory="8Gi"), pod("a", on="n1", memory="6Gi"))
    world = World(snapshot, Agenda(NOW))
    world.check_room()
    world.put_pod(pod("b", on="n1", memory="3Gi"))
    with pytest.raises(AssertionError) as broken:
        world.check_room()
    assert str(broken.value) == (
        f"node n1: pods request {9 * 2**30} of memory, {8 * 2**30} is there"
    )


Step = Callable[[SimulatedCluster], None]

NODES = ("n1", "n2", "n3")
VMS = ("a", "b", "c", "d", "e")
seconds = st.integers(0, 400)


def _migrate(number: int, vm_name: str, to: str) -> Step:
    def step(simulated: SimulatedCluster) -> None:
        found = simulated.read().vmi_by_key.get(key(vm_name))
        if found is not None and found.phase == "Running":
            with suppress(ConflictError, RefusedError):
                simulated.create_migration(request(f"m{number}", vm_name, to))

    return step


def _delete(vm_name: str) -> Step:
    def step(simulated: SimulatedCluster) -> None:
        if key(vm_name) in simulated.read().vmi_by_key:
            simulated.delete_vmi(key(vm_name))

    return step


def _add_pod(number: int, memory_gib: int, priority: int, on: str | None) -> Step:
    arriving = pod(f"p{number}", memory=f"{memory_gib}Gi", priority=priority, on=on)

    def step(simulated: SimulatedCluster) -> None:
        if arriving.key not in simulated.read().pod_by_key:
            simulated.add_pod(arriving)

    return step


def _hold(on: str, vm_name: str, name: str) -> Step:
    def step(simulated: SimulatedCluster) -> None:
        with suppress(RefusedError):
            simulated.create_hold(hold(on, of=vm_name, name=name))

    return step


steps = st.one_of(
    st.builds(_migrate, st.integers(0, 9), st.sampled_from(VMS), st.sampled_from(NODES)),
    st.builds(_delete, st.sampled_from(VMS)),
    st.builds(
        _add_pod,
        st.integers(0, 9),
        st.integers(1, 6),
        st.integers(0, 1),
        st.sampled_from([None, *NODES]),
    ),
    st.builds(_hold, st.sampled_from(NODES), st.sampled_from(VMS), st.sampled_from(["l1", "l2"])),
    st.builds(
        lambda name: lambda simulated: simulated.script_migrations(key(name), Fail("why not")),
        st.sampled_from(VMS),
    ),
    st.builds(
        lambda name, on: lambda simulated: simulated.cordon(name, is_unschedulable=on),
        st.sampled_from(NODES),
        st.booleans(),
    ),
    st.builds(lambda passing: lambda simulated: simulated.advance(passing), seconds),
)


@st.composite
def starts(draw: st.DrawFn) -> Snapshot:
    """Three nodes with up to five VMs, each running where there was room, or pending."""
    left = {name: draw(st.integers(4, 16)) for name in NODES}
    nodes = [node(name, memory=f"{gib}Gi") for name, gib in left.items()]
    vms = []
    for name in draw(st.lists(st.sampled_from(VMS), unique=True)):
        gib = draw(st.integers(1, 8))
        on = draw(st.sampled_from(NODES))
        if gib <= left[on]:
            left[on] -= gib
            vms.append(vm(name, on=on, memory=f"{gib}Gi"))
        else:
            vms.append(pending_vm(name, f"{gib}Gi"))
    limits = MigrationConfiguration(
        parallel_migrations_per_cluster=draw(st.integers(1, 5)),
        parallel_outbound_migrations_per_node=draw(st.integers(1, 2)),
    )
    return cluster(nodes, *vms, limits)


@given(starts(), st.lists(steps, max_size=12))
def test_whatever_happens_no_node_is_over_committed_and_every_migration_ends(
    start: Snapshot, course: list[Step]
) -> None:
    """The simulation itself raises when a node is over-committed."""
    simulated = SimulatedCluster(start)
    for step in course:
        step(simulated)
    simulated.advance(4 * 3600)
    assert all(migration.is_finished for migration in simulated.read().migrations)


@given(starts(), st.lists(steps, max_size=12))
def test_the_same_calls_give_the_same_course(start: Snapshot, course: list[Step]) -> None:
    first, second = SimulatedCluster(start), SimulatedCluster(start)
    for step in course:
        step(first)
        step(second)
    assert first.journal == second.journal
    assert first.read() == second.read()
