"""What keeps a VM where it is, each with a code of its own."""

from datetime import timedelta
from typing import Any

import pytest

from rebalancer.model.keys import EVICTION_IN_PROGRESS, OPT_OUT, PREFER_NO_EVICTION
from rebalancer.model.objects import (
    Condition,
    LauncherSpec,
    MigrationState,
    NetworkAttachmentDefinition,
    VirtualMachineInstance,
)
from rebalancer.model.plan import Refusal
from rebalancer.model.snapshot import Snapshot
from rebalancer.scheduling.movability import Movability
from tests.builders import NOW, cluster, key, migrating, migration, node, pod, vm


def refused(snapshot: Snapshot, name: str = "a", *, may_move_reluctant: bool = False) -> str:
    """The code of the refusal, empty when the VM may be moved."""
    found = judge(snapshot, name, may_move_reluctant=may_move_reluctant)
    return found.code if found else ""


def judge(snapshot: Snapshot, name: str = "a", **options: Any) -> Refusal | None:
    defaults = {
        "failure_backoff_seconds": 600,
        "cooldown_seconds": 600,
        "may_move_reluctant": False,
        "checks_quotas": True,
    }
    movability = Movability(snapshot, **{**defaults, **options})
    return movability.refusal(snapshot.vmi_by_key[key(name)])


def with_vmi(**fields: Any) -> Snapshot:
    return cluster(node("n1"), vm("a", on="n1", vmi=fields))


def test_a_running_live_migratable_vm_may_be_moved() -> None:
    assert refused(cluster(node("n1"), vm("a", on="n1"))) == ""


@pytest.mark.parametrize(
    ("snapshot", "code"),
    [
        (with_vmi(phase="Scheduled"), "not-running"),
        (with_vmi(is_terminating=True), "terminating"),
        (cluster(node("n1"), vm("a", on="n1", is_terminating=True)), "terminating"),
        (cluster(node("n2"), vm("a", on="n1")), "node-unknown"),
        (with_vmi(live_migratable=None), "not-yet-migratable"),
        (with_vmi(live_migratable=Condition("False", "X", "y")), "not-live-migratable"),
        (with_vmi(annotations={OPT_OUT: ""}), "opted-out"),
        (with_vmi(annotations={OPT_OUT: "true"}), "opted-out"),
        (with_vmi(annotations={OPT_OUT: "false"}), ""),
        (with_vmi(annotations={PREFER_NO_EVICTION: "true"}), "prefers-no-eviction"),
        (
            cluster(node("n1"), vm("a", on="n1", annotations={EVICTION_IN_PROGRESS: ""})),
            "eviction-in-progress",
        ),
        (with_vmi(eviction_strategy="External"), "eviction-external"),
        (with_vmi(eviction_strategy="None"), ""),
        (with_vmi(evacuation_node_name="n1"), "evacuating"),
        (with_vmi(migration_state=MigrationState("gone")), "ghost-migration"),
        (with_vmi(migration_state=MigrationState("gone", is_completed=True)), ""),
        (cluster(node("n1", is_ready=False), vm("a", on="n1")), "node-not-ready"),
        (
            cluster(node("n1", labels={"kubevirt.io/schedulable": "false"}), vm("a", on="n1")),
            "virt-handler-silent",
        ),
        (cluster(node("n1"), vm("a", on="n1", scheduler_name="mine")), "foreign-scheduler"),
        (cluster(node("n1"), vm("a", on="n1", unmodelled=("resource claims",))), "unmodelled"),
        (cluster(node("n1"), node("n2"), migrating(vm("a", on="n1"), to="n2")), "launcher-pods"),
        (cluster(node("n1"), vm("a", on="n1"), migration("m", "a")), "migration-in-flight"),
        (
            cluster(
                node("n1"),
                vm("a", on="n1"),
                migration("m", "a", "Succeeded", created_at=NOW - timedelta(minutes=11)),
            ),
            "",
        ),
        (cluster(node("n1"), vm("a", on="n1"), migration("m", "a", "Succeeded")), "cooldown"),
        (with_vmi(pending_changes=("HotMemoryChange",)), "pending-change"),
        (with_vmi(running_backup="nightly"), "backup-running"),
        (with_vmi(utility_volumes=("probe",)), "utility-volumes"),
        (with_vmi(is_paused=True), ""),
    ],
)
def test_each_bar_has_its_code(snapshot: Snapshot, code: str) -> None:
    assert refused(snapshot) == code


@pytest.mark.parametrize(("length", "code"), [(63, ""), (64, "name-too-long")])
def test_a_vm_whose_name_is_no_label_value_stays(length: int, code: str) -> None:
    """KubeVirt runs it, and its API server refuses each of its migrations."""
    name = "a" * length
    assert refused(cluster(node("n1"), vm(name, on="n1")), name) == code


def test_a_finished_second_launcher_is_in_nobodys_way() -> None:
    """kubevirt/kubevirt#12773, #18320"""
    old = pod("old", on="n2", phase="Succeeded", vmi_uid="vmi-a")
    assert refused(cluster(node("n1"), node("n2"), vm("a", on="n1"), old)) == ""
    stale = pod("old", on="n2", vmi_uid="vmi-a")
    assert refused(cluster(node("n1"), node("n2"), vm("a", on="n1"), stale)) == "launcher-pods"


def test_the_policy_can_allow_vms_that_prefer_no_eviction() -> None:
    snapshot = with_vmi(annotations={PREFER_NO_EVICTION: "true"})
    assert refused(snapshot, may_move_reluctant=True) == ""


def failures(count: int, minutes_ago: int) -> Snapshot:
    """The last migrations of VM a, one an hour, all failed."""
    ended = NOW - timedelta(minutes=minutes_ago)
    return cluster(
        node("n1"),
        vm("a", on="n1"),
        *(
            migration(
                f"m{number}",
                "a",
                "Failed",
                created_at=ended - timedelta(hours=number),
                phase_times=(("Failed", ended - timedelta(hours=number)),),
                failure_reason="client gave up",
            )
            for number in range(count)
        ),
    )


@pytest.mark.parametrize(
    ("count", "minutes_ago", "is_left_alone"),
    [(1, 9, True), (1, 11, False), (2, 19, True), (2, 21, False), (3, 39, True), (3, 41, False)],
)
def test_each_failure_in_a_row_doubles_the_time_of_rest(
    count: int, minutes_ago: int, is_left_alone: bool
) -> None:
    assert (refused(failures(count, minutes_ago)) == "failure-backoff") is is_left_alone


def test_a_success_ends_the_row_of_failures() -> None:
    succeeded = migration("ok", "a", "Succeeded", created_at=NOW - timedelta(minutes=10))
    failed = migration("bad", "a", "Failed", created_at=NOW - timedelta(minutes=15))
    snapshot = cluster(node("n1"), vm("a", on="n1"), failed, succeeded)
    assert refused(snapshot) == ""


def test_the_reason_of_the_last_failure_is_told() -> None:
    found = judge(failures(2, 1))
    assert found is not None
    assert "its last 2 migrations failed (client gave up)" in found.message


def test_a_vm_without_a_host_model_on_its_node_cannot_be_given_a_target() -> None:
    labels = node("n1").labels
    plain = node("n1")
    bare = {k: v for k, v in labels.items() if not k.startswith("host-model-cpu")}
    snapshot = cluster(
        type(plain)(name="n1", allocatable=plain.allocatable, labels=bare), vm("a", on="n1")
    )
    assert refused(snapshot) == "no-host-model"


@pytest.mark.parametrize(
    ("definitions", "missing", "code"),
    [
        ((NetworkAttachmentDefinition("infra", "blue"),), (), ""),
        ((NetworkAttachmentDefinition("default", "blue"),), (), "network-gone"),
        ((), ("NetworkAttachmentDefinition",), ""),
    ],
)
def test_a_vm_whose_network_is_known_to_be_gone_cannot_be_given_a_target(
    definitions: tuple[NetworkAttachmentDefinition, ...], missing: tuple[str, ...], code: str
) -> None:
    attached = LauncherSpec(networks=(key("blue", "infra"),))
    vmi = vm("a", on="n1", vmi={"launcher": attached})
    assert refused(cluster(node("n1"), vmi, definitions, missing=missing)) == code


def test_every_vmi_without_a_launcher_is_refused_and_never_a_crash() -> None:
    lonely = VirtualMachineInstance("default", "a", "vmi-a", node_name="n1")
    assert refused(cluster(node("n1"), lonely)) == "launcher-pods"
