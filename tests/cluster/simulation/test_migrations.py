"""The simulated virt-api, virt-controller and virt-handler."""

from collections.abc import Iterable
from datetime import timedelta

import pytest
from msgspec.structs import replace

from rebalancer.cluster.simulated import SimulatedCluster
from rebalancer.cluster.simulation.scripts import Fail, Stall, Succeed
from rebalancer.errors import ConflictError, RefusedError
from rebalancer.model.keys import CREATED_BY, HOSTNAME, MIGRATION_JOB_UID
from rebalancer.model.objects import Condition, MigrationConfiguration, MigrationState, Node
from rebalancer.model.snapshot import Snapshot
from tests.builders import NOW, Thing, cluster, key, migrating, node, pending_vm, vm
from tests.builders import migration as migration_of
from tests.cluster.simulation.requests import events, message_of, migration, node_of, request

GIB_IN_8_SECONDS = 128 * 2**20
FIXED_SECONDS = 8
"""From the creation of a migration to its phase Running, when its target has room at once."""


def three_nodes(*things: Thing | Iterable[Thing]) -> Snapshot:
    return cluster(node("n1"), node("n2"), node("n3"), *things)


def simulation(*things: Thing | Iterable[Thing]) -> SimulatedCluster:
    return SimulatedCluster(three_nodes(*things), bandwidth_bytes_per_second=GIB_IN_8_SECONDS)


def phase(cluster: SimulatedCluster, name: str) -> str:
    return migration(cluster, name).phase


def test_a_migration_goes_through_all_phases_and_takes_as_long_as_its_bytes_do() -> None:
    simulated = simulation(vm("a", on="n1", memory="2Gi"))
    simulated.create_migration(request("m", "a", "n2"))
    simulated.advance(60)
    assert [(p, (t - NOW).total_seconds()) for p, t in migration(simulated, "m").phase_times] == [
        ("Pending", 0),
        ("Scheduling", 0),
        ("Scheduled", 2),
        ("PreparingTarget", 4),
        ("TargetReady", 6),
        ("Running", FIXED_SECONDS),
        ("Succeeded", FIXED_SECONDS + 16),
    ]


def test_the_kubevirt_crs_bandwidth_limit_slows_migrations_down() -> None:
    slow = MigrationConfiguration(bandwidth_bytes_per_second=GIB_IN_8_SECONDS // 2)
    simulated = simulation(vm("a", on="n1", memory="1Gi"), slow)
    simulated.create_migration(request("m", "a", "n2"))
    simulated.advance(FIXED_SECONDS + 15)
    assert phase(simulated, "m") == "Running"
    simulated.advance(1)
    assert phase(simulated, "m") == "Succeeded"


def test_both_pods_hold_room_until_the_end_and_then_only_the_target() -> None:
    simulated = simulation(vm("a", on="n1"))
    simulated.create_migration(request("m", "a", "n2"))
    simulated.advance(FIXED_SECONDS)
    during = simulated.read()
    assert [pod.node_name for pod in during.launchers_by_vmi["vmi-a"]] == ["n1", "n2"]
    assert during.vmi_by_key[key("a")].node_name == "n1"
    assert during.vmi_by_key[key("a")].migration_state == MigrationState(
        migration(simulated, "m").uid
    )
    simulated.advance(600)
    after = simulated.read()
    assert [pod.node_name for pod in after.launchers_by_vmi["vmi-a"]] == ["n2"]
    assert after.pod_by_key[key("virt-launcher-a")].phase == "Succeeded"
    assert after.vmi_by_key[key("a")].node_name == "n2"
    assert after.vmi_by_key[key("a")].migration_state == MigrationState(
        migration(simulated, "m").uid, is_completed=True
    )


def test_the_target_pod_is_what_virt_controller_makes() -> None:
    simulated = simulation(vm("a", on="n1", node_selector={"disk": "ssd"}))
    simulated.create_migration(request("m", "a", "n2"))
    uid = migration(simulated, "m").uid
    (target,) = (pod for pod in simulated.read().pods if pod.migration_uid == uid)
    assert target.created_at == NOW
    assert target.vmi_uid == "vmi-a"
    assert target.labels[CREATED_BY] == "vmi-a"
    assert target.labels[MIGRATION_JOB_UID] == uid
    assert target.node_selector[HOSTNAME] == "n2"
    assert target.node_selector["disk"] == "ssd"
    assert target.node_selector["cpu-model-migration.node.kubevirt.io/Skylake-Server"] == "true"
    (apart,) = target.pod_anti_affinity
    assert apart.topology_key == HOSTNAME


def test_a_target_without_room_fails_the_migration_after_five_minutes() -> None:
    simulated = simulation(vm("a", on="n1", memory="20Gi"), vm("b", on="n2", memory="20Gi"))
    simulated.create_migration(request("m", "a", "n2"))
    simulated.advance(299)
    assert phase(simulated, "m") == "Scheduling"
    simulated.advance(1)
    assert phase(simulated, "m") == "Failed"
    assert migration(simulated, "m").failure_reason == ""
    assert len(simulated.read().pods) == 2


def test_the_vmis_own_host_name_wins_over_the_target() -> None:
    simulated = simulation(vm("a", on="n1", node_selector={HOSTNAME: "n3"}))
    simulated.create_migration(request("m", "a", "n2"))
    simulated.advance(600)
    assert simulated.read().vmi_by_key[key("a")].node_name == "n3"


def test_no_vm_is_migrated_to_the_node_that_it_is_on() -> None:
    simulated = simulation(vm("a", on="n1"))
    simulated.create_migration(request("m", "a", "n1"))
    target = f"virt-launcher-a-{migration(simulated, 'm').uid[:5]}"
    assert "1 node(s) didn't match pod anti-affinity rules" in message_of(simulated, target)
    simulated.advance(600)
    assert phase(simulated, "m") == "Failed"


def test_a_target_pod_of_a_foreign_scheduler_is_given_fifteen_minutes() -> None:
    simulated = simulation(vm("a", on="n1", scheduler_name="volcano"))
    simulated.create_migration(request("m", "a", "n2"))
    simulated.advance(899)
    assert phase(simulated, "m") == "Scheduling"
    simulated.advance(1)
    assert phase(simulated, "m") == "Failed"


def test_the_clusters_limit_keeps_a_migration_pending() -> None:
    limits = MigrationConfiguration(parallel_migrations_per_cluster=1)
    simulated = simulation(vm("a", on="n1"), vm("b", on="n2"), limits)
    simulated.create_migration(request("first", "a", "n3"))
    simulated.create_migration(request("second", "b", "n3"))
    simulated.advance(FIXED_SECONDS)
    assert (phase(simulated, "first"), phase(simulated, "second")) == ("Running", "Pending")
    simulated.wait_for_change([key("a")], 600)
    assert (phase(simulated, "first"), phase(simulated, "second")) == ("Succeeded", "Scheduling")


def test_the_outbound_limit_counts_each_node_by_itself() -> None:
    limits = MigrationConfiguration(parallel_outbound_migrations_per_node=1)
    vms = [vm("a", on="n1"), vm("b", on="n1"), vm("c", on="n2")]
    simulated = SimulatedCluster(three_nodes(*vms, limits))
    for name in ("a", "b", "c"):
        simulated.create_migration(request(name, name, "n3"))
    assert [phase(simulated, name) for name in ("a", "b", "c")] == [
        "Scheduling",
        "Pending",
        "Scheduling",
    ]


def test_a_pending_migration_counts_against_the_limits_once_it_has_a_target_pod() -> None:
    limits = MigrationConfiguration(parallel_migrations_per_cluster=1)
    other = migrating(vm("b", on="n2"), to="n3", phase="Pending")
    simulated = simulation(vm("a", on="n1"), migration_of("m", "a", "Pending"), other, limits)
    assert (phase(simulated, "m"), phase(simulated, "move-b")) == ("Pending", "Scheduled")


@pytest.mark.parametrize(
    "waiting",
    [
        pending_vm("a", "64Gi"),
        vm("a", on="n1", vmi={"node_name": "elsewhere"}),
        [*vm("a", on="n1"), replace(vm("a", on="n2")[1], name="second", uid="second")],
    ],
    ids=["VM that does not run", "unknown source node", "two launcher pods"],
)
def test_a_migration_that_cannot_start_stays_pending(waiting: Thing | Iterable[Thing]) -> None:
    simulated = simulation(waiting)
    simulated.create_migration(request("m", "a", "n3"))
    simulated.advance(3600)
    assert phase(simulated, "m") == "Pending"


def test_a_migration_from_a_node_without_host_model_stays_pending() -> None:
    plain = Node("n4", node("n4").allocatable, labels={HOSTNAME: "n4"})
    simulated = simulation(plain, vm("a", on="n4"))
    simulated.create_migration(request("m", "a", "n3"))
    simulated.advance(3600)
    assert phase(simulated, "m") == "Pending"


@pytest.mark.parametrize(
    ("launched", "name", "code", "says"),
    [
        (vm("other", on="n1"), "a", "gone", ""),
        (vm("a", on="n1", vmi={"phase": "Failed"}), "a", "not-running", ""),
        (
            vm("a", on="n1", vmi={"live_migratable": Condition("False", "Disks", "not shared")}),
            "a",
            "not-live-migratable",
            "(Disks: not shared)",
        ),
        (
            migrating(vm("a", on="n1"), to="n2"),
            "a",
            "migration-in-flight",
            "(uid migration-move-a)",
        ),
        (vm("a" * 64, on="n1"), "a" * 64, "name-too-long", "63 characters"),
    ],
    ids=lambda value: value if isinstance(value, str) and "-" in value else "",
)
def test_a_migration_that_virt_api_denies_is_refused(
    launched: Thing | Iterable[Thing], name: str, code: str, says: str
) -> None:
    simulated = simulation(launched)
    before = simulated.read().migrations
    with pytest.raises(RefusedError) as refused:
        simulated.create_migration(request("m", name, "n2"))
    assert refused.value.code == code
    assert says in str(refused.value)
    assert simulated.read().migrations == before


def test_a_name_is_refused_while_its_migration_is_under_way_and_a_conflict_afterwards() -> None:
    simulated = simulation(vm("a", on="n1"))
    simulated.create_migration(request("m", "a", "n2"))
    with pytest.raises(RefusedError, match="another migration of it is under way"):
        simulated.create_migration(request("m", "a", "n2"))
    simulated.advance(600)
    with pytest.raises(ConflictError, match='"m" already exists'):
        simulated.create_migration(request("m", "a", "n3"))


def test_a_migration_fails_as_scripted_and_gives_its_room_back() -> None:
    simulated = simulation(vm("a", on="n1"))
    simulated.script_migrations(key("a"), Fail("no route to host"), Succeed())
    simulated.create_migration(request("m", "a", "n2"))
    simulated.advance(600)
    failed = migration(simulated, "m")
    assert (failed.phase, failed.failure_reason) == ("Failed", "no route to host")
    vmi = simulated.read().vmi_by_key[key("a")]
    assert vmi.node_name == "n1"
    assert vmi.migration_state == MigrationState(failed.uid, is_completed=True, is_failed=True)
    assert [pod.node_name for pod in simulated.read().launchers_by_vmi[vmi.uid]] == ["n1"]
    simulated.create_migration(request("again", "a", "n2"))
    simulated.advance(600)
    assert phase(simulated, "again") == "Succeeded"


def test_a_stalled_migration_stays_running_until_it_is_released() -> None:
    simulated = simulation(vm("a", on="n1"))
    simulated.script_migrations(key("a"), Stall())
    simulated.create_migration(request("m", "a", "n2"))
    simulated.advance(24 * 3600)
    assert phase(simulated, "m") == "Running"
    simulated.release(key("a"))
    assert phase(simulated, "m") == "Succeeded"
    with pytest.raises(ValueError, match="no migration of VM default/a is stalled"):
        simulated.release(key("a"))


def test_a_stalled_migration_of_a_vm_that_is_gone_can_no_longer_be_released() -> None:
    simulated = simulation(vm("a", on="n1"))
    simulated.script_migrations(key("a"), Stall())
    simulated.create_migration(request("m", "a", "n2"))
    simulated.advance(600)
    simulated.delete_vmi(key("a"))
    simulated.advance(60)
    with pytest.raises(ValueError, match="no migration of VM default/a is stalled"):
        simulated.release(key("a"))


def test_no_target_pod_is_made_for_a_vm_that_is_being_deleted() -> None:
    simulated = simulation(vm("a", on="n1"))
    simulated.delete_vmi(key("a"))
    simulated.create_migration(request("m", "a", "n2"))
    assert len(simulated.read().pods) == 1
    simulated.advance(60)
    assert phase(simulated, "m") == "Failed"


@pytest.mark.parametrize("seconds", [0, 1, 5, 60], ids="after {} s".format)
def test_a_vm_that_is_deleted_takes_its_migration_and_its_pods_along(seconds: int) -> None:
    simulated = simulation(vm("a", on="n1"))
    simulated.script_migrations(key("a"), Stall())
    simulated.create_migration(request("m", "a", "n2"))
    simulated.at(seconds, lambda: simulated.delete_vmi(key("a")))
    simulated.advance(600)
    after = simulated.read()
    assert phase(simulated, "m") == "Failed"
    assert (after.vmis, after.pods) == ((), ())


def test_only_the_last_five_finished_migrations_of_a_vm_are_kept() -> None:
    simulated = simulation(vm("a", on="n1"), vm("b", on="n1"))
    simulated.create_migration(request("of-b", "b", "n3"))
    for number in range(7):
        simulated.create_migration(request(f"m{number}", "a", "n1" if number % 2 else "n2"))
        simulated.advance(600)
    kept = {each.name for each in simulated.read().migrations}
    assert kept == {"of-b", "m2", "m3", "m4", "m5", "m6"}


def test_a_vm_can_be_moved_on_and_back() -> None:
    simulated = simulation(vm("a", on="n1"))
    for number, target in enumerate(("n2", "n3", "n1")):
        simulated.create_migration(request(f"m{number}", "a", target))
        simulated.advance(600)
        assert simulated.read().vmi_by_key[key("a")].node_name == target


@pytest.mark.parametrize(
    "begun", ["Pending", "Scheduling", "Scheduled", "PreparingTarget", "TargetReady", "Running"]
)
def test_migrations_that_are_under_way_at_the_start_go_on(begun: str) -> None:
    simulated = simulation(migrating(vm("a", on="n1"), to="n2", phase=begun))
    simulated.advance(600)
    assert phase(simulated, "move-a") == "Succeeded"
    assert simulated.read().vmi_by_key[key("a")].node_name == "n2"


@pytest.mark.parametrize("begun", ["", "Pending"])
def test_a_migration_that_nobody_has_looked_at_yet_goes_wherever_there_is_room(begun: str) -> None:
    simulated = simulation(vm("a", on="n1"), vm("b", on="n2"), migration_of("m", "a", begun))
    simulated.advance(600)
    assert phase(simulated, "m") == "Succeeded"
    assert simulated.read().vmi_by_key[key("a")].node_name == "n3"


def test_a_migration_without_its_target_pod_fails() -> None:
    simulated = simulation(vm("a", on="n1"), migration_of("m", "a", "Running"))
    assert phase(simulated, "m") == "Failed"


def test_a_migration_whose_target_pod_has_ended_fails() -> None:
    vmi, source, target, under_way = migrating(vm("a", on="n1"), to="n2")
    simulated = simulation(vmi, source, replace(target, phase="Failed"), under_way)
    assert phase(simulated, "move-a") == "Failed"


def test_a_migration_whose_target_pod_is_deleted_fails() -> None:
    simulated = simulation(migrating(vm("a", on="n1"), to="n2"))
    simulated.delete_pod(key("virt-launcher-a-target"))
    assert phase(simulated, "move-a") == "Failed"
    simulated.advance(2)
    assert node_of(simulated, "virt-launcher-a") == "n1"
    assert len(simulated.read().pods) == 1


def test_a_vm_that_is_started_is_scheduled_boots_and_can_then_be_migrated() -> None:
    simulated = SimulatedCluster(cluster(node("n1")), boot_seconds=30)
    simulated.start_vmi(*pending_vm("a", "8Gi"))
    simulated.advance(40)
    assert events(simulated) == [
        (0, "pod default/virt-launcher-a created"),
        (0, "pod default/virt-launcher-a bound to n1"),
        (2, "VM default/a is Scheduled on n1"),
        (32, "VM default/a is Running on n1"),
    ]
    started = simulated.read().vmi_by_key[key("a")]
    assert started.live_migratable == Condition("True")
    assert simulated.read().pod_by_key[key("virt-launcher-a")].created_at == NOW


def test_a_vm_that_can_never_be_migrated_still_says_so_when_it_runs() -> None:
    fixed = Condition("False", "DisksNotLiveMigratable")
    simulated = SimulatedCluster(cluster(node("n1")))
    simulated.start_vmi(*pending_vm("a", "8Gi", vmi={"live_migratable": fixed}))
    simulated.advance(60)
    assert simulated.read().vmi_by_key[key("a")].live_migratable == fixed


def test_a_vm_that_is_deleted_while_it_boots_never_runs() -> None:
    simulated = SimulatedCluster(cluster(node("n1")), boot_seconds=3)
    simulated.start_vmi(*pending_vm("a", "8Gi"))
    simulated.at(4, lambda: simulated.delete_vmi(key("a")))
    simulated.advance(60)
    assert "VM default/a is Running on n1" not in [what for _, what in events(simulated)]
    assert simulated.read().vmis == ()


def test_a_vm_that_is_started_again_boots_from_the_beginning() -> None:
    simulated = SimulatedCluster(cluster(node("n1")), boot_seconds=30)
    simulated.start_vmi(*pending_vm("a", "8Gi"))
    simulated.advance(10)
    simulated.delete_vmi(key("a"))
    simulated.advance(2)
    again, launcher = pending_vm("a", "8Gi", vmi={"uid": "vmi-again"}, uid="pod-again")
    simulated.start_vmi(again, launcher)
    simulated.advance(31)
    assert simulated.read().vmi_by_key[key("a")].phase == "Scheduled"
    simulated.advance(1)
    assert simulated.read().vmi_by_key[key("a")].phase == "Running"


def test_a_vm_or_pod_whose_name_is_taken_cannot_be_started() -> None:
    simulated = simulation(vm("a", on="n1"))
    vmi, launcher = vm("a", on=None)
    with pytest.raises(ConflictError, match='"a" already exists'):
        simulated.start_vmi(vmi, launcher)
    with pytest.raises(ConflictError, match='"virt-launcher-a" already exists'):
        simulated.add_pod(launcher)


def test_a_deleted_vm_holds_its_room_until_its_pod_is_gone() -> None:
    simulated = simulation(vm("a", on="n1"))
    simulated.delete_vmi(key("a"))
    assert simulated.read().pods_by_node["n1"][0].is_terminating
    simulated.advance(2)
    assert simulated.read().pods_by_node == {}
    assert simulated.now() == NOW + timedelta(seconds=2)
