"""Nodes emptied on the real control plane: alone, beside KubeVirt's evacuation and `kubectl drain`.

A test is named after its place in our list and the report that it comes from.
"""

import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.controlplane import builders
from tests.controlplane.api import Api, ApiError, Object, path_of
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.migration_scripts import MigrationScript
from tests.controlplane.scenario import add_nodes, start_vmis
from tests.controlplane.waiting import launcher_pods, wait_for
from tests.e2e.cluster_view import (
    MIGRATIONS,
    NAMESPACE,
    Migrated,
    lock_pods,
    migrations,
    nodes_of_vms,
)
from tests.e2e.command import Finished, rebalancer, start

SIGN = {"rebalancer/drain": ""}
# A launcher pod asks for about 320Mi more than its guest has.
JUST_BELOW_8GI = "7800Mi"
JUST_BELOW_4GI = "3700Mi"
WITH_TARGET_POD = {"Scheduling", "Scheduled", "PreparingTarget", "TargetReady", "Running"}


@pytest.fixture
def nodes(empty_cluster: ControlPlane, api: Api) -> ControlPlane:
    """n1, n2 and n3 with 64Gi each, and the rebalancer's namespace."""
    api.create(
        path_of("namespaces"),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
    )
    add_nodes(api, [builders.node(name, memory="64Gi") for name in ("n1", "n2", "n3")])
    return empty_cluster


def vmi(name: str, guest_memory: str = "2Gi", **fields: object) -> Object:
    return builders.vmi(name, guest_memory=guest_memory, **fields)  # type: ignore[arg-type]


def patch_node(api: Api, name: str, **changes: Object) -> None:
    api.patch(path_of("nodes", name=name), changes)


def put_sign(api: Api, name: str) -> None:
    patch_node(api, name, metadata={"labels": SIGN}, spec={"unschedulable": True})


def run(control_plane: ControlPlane) -> Finished:
    return rebalancer("run", "-o", "json", kubeconfig=control_plane.kubeconfig())


def vms_on(api: Api, name: str) -> list[str]:
    return sorted(vm for vm, node in nodes_of_vms(api).items() if node == name)


def test_r26_harvester_5306_what_cannot_leave_is_not_tried_again(
    nodes: ControlPlane, api: Api
) -> None:
    start_vmis(api, {"n1": [vmi("vm0"), vmi("vm1", not_migratable="DisksNotLiveMigratable")]})
    put_sign(api, "n1")
    rounds = [run(nodes) for _ in range(3)]
    assert [done.code for done in rounds] == [4, 4, 4]
    assert migrations(api) == [Migrated("vm0", "Succeeded")]
    assert vms_on(api, "n1") == ["vm1"]
    (goal,) = rounds[-1].document["plan"]["goals"]
    (stays,) = [reason for reason in goal["reasons"] if reason["code"] == "cannot-leave"]
    assert "KubeVirt cannot live-migrate it (DisksNotLiveMigratable" in stays["message"]


def test_r33_openshift_docs_60910_room_is_made_where_sums_are_not_enough(
    nodes: ControlPlane, api: Api
) -> None:
    """n2 and n3 have room for four of the five; s moves from one to the other for the fifth."""
    for name, memory in (("n2", "40Gi"), ("n3", "44Gi")):
        api.create(path_of("pods", "default"), builders.pod(f"on-{name}", memory=memory, node=name))
    five = [vmi(f"v{i}", JUST_BELOW_8GI) for i in range(1, 6)]
    start_vmis(api, {"n1": five, "n2": [vmi("s", JUST_BELOW_4GI)]})
    put_sign(api, "n1")
    done = run(nodes)
    assert done.code == 0, done.stderr
    assert sorted(migrations(api)) == [
        Migrated(vm, "Succeeded") for vm in ("s", "v1", "v2", "v3", "v4", "v5")
    ]
    assert nodes_of_vms(api)["s"] == "n3"
    assert {name: len(vms_on(api, name)) for name in ("n1", "n2", "n3")} == {
        "n1": 0,
        "n2": 3,
        "n3": 3,
    }
    assert lock_pods(api) == []
    assert run(nodes).document["plan"]["moves"] == []


def test_r27_hyperconverged_cluster_operator_823_a_cordon_moves_nobody(
    nodes: ControlPlane, api: Api
) -> None:
    start_vmis(api, {"n1": [vmi("a"), vmi("b")]})
    patch_node(api, "n1", spec={"unschedulable": True})
    done = run(nodes)
    assert done.code == 0, done.stderr
    assert migrations(api) == []


def test_r27_hyperconverged_cluster_operator_823_kubevirts_taint_moves_each_once(
    nodes: ControlPlane, api: Api
) -> None:
    """KubeVirt's own controller acts at that taint as well, at the same time."""
    start_vmis(api, {"n1": [vmi("a"), vmi("b"), vmi("c"), vmi("d")]})
    taint = {"key": "kubevirt.io/drain", "effect": "NoSchedule"}
    patch_node(api, "n1", spec={"taints": [taint]})
    run(nodes)
    wait_for(lambda: vms_on(api, "n1"), lambda left: not left, "n1 to be empty")
    assert Counter(vm for vm, _ in migrations(api)) == {"a": 1, "b": 1, "c": 1, "d": 1}


def test_r28_kubevirt_9585_nothing_more_starts_once_the_sign_is_gone(
    nodes: ControlPlane, api: Api
) -> None:
    nodes.node_agent.script_others(MigrationScript(duration_seconds=2))
    start_vmis(api, {"n1": [vmi(name) for name in "abcdef"]})
    put_sign(api, "n1")
    process = start(["run"], nodes.kubeconfig())
    wait_for(
        lambda: [phase for _, phase in migrations(api)], lambda phases: "Running" in phases, "moves"
    )
    patch_node(api, "n1", metadata={"labels": dict.fromkeys(SIGN)}, spec={"unschedulable": False})
    output, _ = process.communicate(timeout=60)
    assert "is no longer to be emptied" in output
    assert [phase for _, phase in migrations(api)] == ["Succeeded"] * 2
    assert len(vms_on(api, "n1")) == 4


def test_r28_kubevirt_5177_a_vm_that_kubevirt_evacuates_is_left_to_it(
    nodes: ControlPlane, api: Api
) -> None:
    """Its eviction was refused and has marked it; its node is open, and its migration hangs."""
    start_vmis(api, {"n1": [vmi("a"), vmi("b")]})
    nodes.node_agent.script("a", MigrationScript(outcome="stall"))
    evict(api, "a")
    wait_for(lambda: migrations(api), lambda m: Migrated("a", "Running") in m, "KubeVirt's own")
    done = rebalancer("drain", "n1", "-o", "json", kubeconfig=nodes.kubeconfig())
    assert done.code == 4, done.stderr
    assert sorted(migrations(api)) == [Migrated("a", "Running"), Migrated("b", "Succeeded")]
    (goal,) = done.document["plan"]["goals"]
    assert [(r["code"], r["object"]) for r in goal["reasons"] if r["object"]] == [
        ("leaving", "default/a")
    ]
    nodes.node_agent.release("a")
    wait_for(lambda: vms_on(api, "n1"), lambda left: not left, "n1 to be empty")


def evict(api: Api, name: str) -> None:
    """As `kubectl drain` does, once; KubeVirt refuses, and migrates instead."""
    (pod,) = launcher_pods(api, name)
    metadata = {"name": pod["metadata"]["name"], "namespace": "default"}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
    with pytest.raises(ApiError, match="Eviction triggered evacuation of VMI") as refused:
        api.create(path_of("pods", "default", metadata["name"]) + "/eviction", eviction)
    assert refused.value.code == 429


def test_r29_kubevirt_8701_a_node_with_others_migrations_keeps_no_other_node_waiting(
    nodes: ControlPlane, api: Api
) -> None:
    """Somebody's two migrations hang, as many as may leave one node at a time."""
    start_vmis(api, {"n1": [vmi(f"x{i}") for i in range(4)], "n2": [vmi("y0"), vmi("y1")]})
    add_nodes(api, [builders.node("n4", memory="64Gi")])
    for name in ("n1", "n2"):
        patch_node(api, name, spec={"unschedulable": True})
    theirs = ["x0", "x1"]
    for name in theirs:
        nodes.node_agent.script(name, MigrationScript(outcome="stall"))
        migrate(api, name)
    wait_for(lambda: migrations(api), lambda all_: [p for _, p in all_] == ["Running"] * 2, "both")
    ours = start(["drain", "n1", "n2"], nodes.kubeconfig())
    wait_for(lambda: vms_on(api, "n2"), lambda left: not left, "n2 to be empty")
    assert {vm for vm, _ in migrations(api)} == {"x0", "x1", "y0", "y1"}
    for name in theirs:
        nodes.node_agent.release(name)
    output, _ = ours.communicate(timeout=60)
    assert ours.returncode == 0, output
    assert Counter(vm for vm, _ in migrations(api)) == dict.fromkeys(nodes_of_vms(api), 1)
    assert vms_on(api, "n1") == []


def migrate(api: Api, name: str) -> None:
    """As `virtctl migrate` does."""
    migration = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstanceMigration",
        "metadata": {"name": f"theirs-{name}", "namespace": "default"},
        "spec": {"vmiName": name},
    }
    api.create(path_of("virtualmachineinstancemigrations", "default"), migration)


def test_r30_hypershift_8974_external_is_left_to_its_owner_and_none_may_move(
    nodes: ControlPlane, api: Api
) -> None:
    strategies = {"a": "LiveMigrate", "b": "External", "c": "None"}
    vmis = [vmi(name, evictionStrategy=strategy) for name, strategy in strategies.items()]
    start_vmis(api, {"n1": vmis})
    put_sign(api, "n1")
    done = run(nodes)
    assert done.code == 4, done.stderr
    assert sorted(migrations(api)) == [Migrated("a", "Succeeded"), Migrated("c", "Succeeded")]
    (goal,) = done.document["plan"]["goals"]
    (stays,) = [reason for reason in goal["reasons"] if reason["code"] == "cannot-leave"]
    assert stays["object"] == "default/b"


def test_r34_kubevirt_9300_a_paused_vm_leaves_a_node_that_is_drained(
    nodes: ControlPlane, api: Api
) -> None:
    start_vmis(api, {"n1": [vmi("v")]})
    path = path_of("virtualmachineinstances", "default", "v")
    paused = {"type": "Paused", "status": "True", "reason": "PausedByUser"}
    conditions = [*api.get(path)["status"]["conditions"], paused]
    api.patch(path, {"status": {"conditions": conditions}})
    put_sign(api, "n1")
    done = run(nodes)
    assert done.code == 0, done.stderr
    assert migrations(api) == [Migrated("v", "Succeeded")]
    assert vms_on(api, "n1") == []
    assert paused["type"] in {each["type"] for each in api.get(path)["status"]["conditions"]}


def test_r31_kubevirt_18063_vms_under_a_users_budget_leave_one_after_another(
    nodes: ControlPlane, api: Api
) -> None:
    """A VMI has no scale, so that the budget allows no disruption ever."""
    pool = {"pool": "a"}
    start_vmis(api, {"n1": [vmi(name, labels=pool) for name in "abc"]})
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep", "namespace": "default"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": pool}},
    }
    api.create(path_of("poddisruptionbudgets", "default"), budget)
    path = path_of("poddisruptionbudgets", "default", "keep")
    wait_for(lambda: api.get(path), lambda b: "conditions" in b["status"], "what it allows")
    put_sign(api, "n1")
    planned = rebalancer("plan", "-o", "json", kubeconfig=nodes.kubeconfig()).document
    codes = [reason["code"] for reason in planned["goals"][0]["reasons"]]
    assert "eviction-would-hang" in codes
    process = start(["run"], nodes.kubeconfig())
    most = max(in_flight_until_it_ends(process, api))
    assert process.returncode == 0
    assert most == 1
    assert sorted(migrations(api)) == [Migrated(vm, "Succeeded") for vm in "abc"]


def in_flight_until_it_ends(process: subprocess.Popen[str], api: Api) -> Iterator[int]:
    """How many migrations have a target pod, ten times a second."""
    while process.poll() is None:
        phases = [phase for _, phase in migrations(api)]
        yield sum(phase in WITH_TARGET_POD for phase in phases)
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.1)


@pytest.mark.parametrize("first", ["rebalancer", "kubectl"])
def test_kubectl_drain_beside_us_migrates_no_vm_twice(
    nodes: ControlPlane, api: Api, first: str
) -> None:
    """It evicts all VMs at once, and KubeVirt takes on those that are not on their way by then."""
    nodes.node_agent.script_others(MigrationScript(duration_seconds=1))
    start_vmis(api, {"n1": [vmi(name) for name in "abcdef"]})
    web = builders.pod("web", node="n1", labels={"app": "web"})
    api.create(path_of("pods", "default"), web)
    config = nodes.kubeconfig()
    if first == "rebalancer":
        ours = start(["drain", "n1"], config)
        wait_for(lambda: migrations(api), bool, "our first migration")
        theirs = kubectl_drain(nodes, "n1")
    else:
        theirs = kubectl_drain(nodes, "n1")
        wait_for(lambda: migrations(api), bool, "KubeVirt's first migration")
        ours = start(["drain", "n1"], config)

    most = max(in_flight_until_it_ends(theirs, api))

    output, _ = ours.communicate(timeout=60)
    assert theirs.returncode == 0, theirs.communicate()
    assert ours.returncode in {0, 4}, output
    assert most <= 2
    assert Counter(migrations(api)) == {Migrated(vm, "Succeeded"): 1 for vm in "abcdef"}
    assert launchers_on(api, "n1") == []
    made_by_kubevirt = [
        each["metadata"]["name"].startswith("kubevirt-evacuation-") for each in api.list(MIGRATIONS)
    ]
    assert any(made_by_kubevirt)
    assert all(made_by_kubevirt) == (first == "kubectl")


def kubectl_drain(control_plane: ControlPlane, node: str) -> subprocess.Popen[str]:
    """Ends by itself once the node is empty."""
    config = f"--kubeconfig={control_plane.kubeconfig()}"
    options = ("--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=60s")
    return subprocess.Popen(
        [control_plane.kubectl, config, "drain", node, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def launchers_on(api: Api, node: str) -> list[str]:
    return [
        pod["metadata"]["name"]
        for pod in api.list(path_of("pods"))
        if pod["spec"].get("nodeName") == node and pod["status"]["phase"] == "Running"
    ]
