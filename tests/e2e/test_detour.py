"""A VM that steps aside and goes on, on the real control plane."""

from tests.controlplane import builders
from tests.controlplane.api import Api, Object, path_of
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.scenario import add_nodes, create_vmi, start_vmis
from tests.controlplane.waiting import wait_for, wait_for_vmi
from tests.e2e.cluster_view import (
    NAMESPACE,
    Migrated,
    lock_pods,
    migrations,
    nodes_of_vms,
    unschedulable_message,
)
from tests.e2e.command import rebalancer


def node(name: str, *takes: str) -> Object:
    """Room for two VMs of 2Gi or one that is larger, of those that are named."""
    return builders.node(name, memory="5Gi", labels={f"takes-{vm}": "yes" for vm in takes})


def vmi(name: str, guest_memory: str) -> Object:
    return builders.vmi(name, guest_memory=guest_memory, nodeSelector={f"takes-{name}": "yes"})


def test_a_vm_lets_another_pass_on_the_node_where_the_pending_one_will_land(
    empty_cluster: ControlPlane, api: Api
) -> None:
    """p needs all of worker-1, so c must leave it for worker-2, where it has room once a and b have
    changed places; b lets a pass on worker-1.
    """
    api.create(
        path_of("namespaces"),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
    )
    nodes = node("worker-1", "b", "p"), node("worker-2", "a", "b", "c"), node("worker-3", "a", "b")
    add_nodes(api, nodes)
    placed = {"worker-1": [vmi("c", "2Gi")], "worker-2": [vmi("a", "3Gi")]}
    # c is let onto the node that it will leave for good by a label that is then taken away.
    api.patch(path_of("nodes", name="worker-1"), {"metadata": {"labels": {"takes-c": "yes"}}})
    start_vmis(api, {**placed, "worker-3": [vmi("b", "2Gi")]})
    api.patch(path_of("nodes", name="worker-1"), {"metadata": {"labels": {"takes-c": None}}})
    create_vmi(api, vmi("p", "4Gi"))
    wait_for(
        lambda: unschedulable_message(api, "p"),
        lambda message: "1 Insufficient memory" in message,
        "p to be unschedulable for memory on one node",
    )

    done = rebalancer("run", "-o", "json", kubeconfig=empty_cluster.kubeconfig())

    assert done.code == 0, done.stderr
    (goal,) = done.document["plan"]["goals"]
    assert goal["proven"]
    assert goal["moves"] == ["default/b", "default/a", "default/c", "default/b#2"]
    wait_for_vmi(api, "p", "Running")
    assert nodes_of_vms(api) == {"a": "worker-3", "b": "worker-2", "c": "worker-2", "p": "worker-1"}
    assert sorted(migrations(api)) == sorted(Migrated(vm, "Succeeded") for vm in "abbc")
    assert lock_pods(api) == []

    again = rebalancer("run", "-o", "json", kubeconfig=empty_cluster.kubeconfig())

    assert again.code == 0, again.stderr
    assert again.document["plan"]["moves"] == []
