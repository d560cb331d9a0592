"""How many VMs of given sizes fit now."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rebalancer.headroom.capacity import (
    LargestVM,
    Shortfall,
    SizeCapacity,
    VMSize,
    capacity,
    largest_size,
    largest_vm,
)
from rebalancer.model.objects import LauncherConfiguration, Pod, Taint, Toleration
from rebalancer.model.snapshot import Snapshot
from rebalancer.scheduling.feasibility import evaluate
from rebalancer.scheduling.state import ClusterState
from tests.builders import cluster, node, vm

GIB = 2**30


def size(name: str, gib: int, millicores: int = 100, **fields: Any) -> VMSize:
    return VMSize(name, {"cpu": millicores, "memory": gib * GIB}, **fields)


def count(snapshot: Snapshot, wanted: VMSize) -> SizeCapacity:
    (found,) = capacity(ClusterState(snapshot), [wanted])
    return found


def test_whole_vms_are_counted_node_by_node() -> None:
    snapshot = cluster(
        node("n1", "15Gi"), node("n2", "15Gi"), node("n3", "7Gi"), vm("a", on="n1", memory="4Gi")
    )
    found = count(snapshot, size("medium", 8))
    assert (found.fits, found.fitting_nodes, found.allowed_nodes) == (2, ("n1", "n2"), 3)


def test_the_scarcest_resource_counts_pod_slots_included() -> None:
    snapshot = cluster(node("n1", "100Gi", "4", pods="3"), node("n2", "100Gi", "1"))
    assert count(snapshot, size("small", 1, 500)).fits == 3 + 2


def test_only_nodes_that_run_vms_and_may_take_this_one_count() -> None:
    gpu = Taint("gpu", "NoSchedule")
    snapshot = cluster(
        node("n1", labels={"disk": "ssd"}),
        node("n2", labels={"disk": "ssd"}, taints=(gpu,)),
        node("n3", labels={"disk": "ssd", "kubevirt.io/schedulable": "false"}),
        node("n4", labels={"disk": "ssd"}, is_unschedulable=True),
        node("n5", labels={"disk": "ssd"}, is_ready=False),
        node("n6"),
        LauncherConfiguration(node_selector={"kubernetes.io/os": "linux"}),
    )
    on_ssd = size("small", 1, node_selector={"disk": "ssd"})
    assert count(snapshot, on_ssd).fitting_nodes == ("n1",)
    tolerant = replace(on_ssd, tolerations=(Toleration("gpu", "Exists"),))
    assert count(snapshot, tolerant).fitting_nodes == ("n1", "n2")


def test_what_the_nearest_node_lacks_is_told_where_a_size_fits_nowhere() -> None:
    snapshot = cluster(
        node("n1", "10Gi", "2"), node("n2", "14Gi", "1"), vm("a", on="n1", memory="2Gi")
    )
    found = count(snapshot, size("large", 16, 2000))
    assert (found.fits, found.allowed_nodes) == (0, 2)
    assert found.nearest == Shortfall("n1", {"memory": 8 * GIB, "cpu": 100}) or (
        found.nearest == Shortfall("n2", {"memory": 2 * GIB, "cpu": 1000})
    )


def test_nothing_is_near_where_no_node_may_take_the_size() -> None:
    found = count(cluster(node("n1")), size("gpu", 1, node_selector={"gpu": "yes"}))
    assert (found.allowed_nodes, found.nearest) == (0, None)


def test_the_largest_size_that_could_start_is_named() -> None:
    sizes = [size("small", 2), size("large", 64), size("medium", 8)]
    state = ClusterState(cluster(node("n1", "20Gi")))
    assert largest_size(sizes, capacity(state, sizes)) == "medium"
    full = ClusterState(cluster(node("n1", "1Gi")))
    assert largest_size(sizes, capacity(full, sizes)) is None


def test_the_largest_vm_has_the_cpu_that_its_memory_asks_for() -> None:
    state = ClusterState(cluster(node("n1", "64Gi", "4"), node("n2", "24Gi", "32")))
    assert largest_vm(state, 250) == LargestVM(24 * GIB, 6000, "n2")
    assert largest_vm(state, 100) == LargestVM(40 * GIB, 4000, "n1")
    assert largest_vm(state, 0) == LargestVM(64 * GIB, 0, "n1")


def test_no_vm_could_start_where_no_node_has_room_for_a_pod() -> None:
    assert largest_vm(ClusterState(cluster(node("n1", pods="0"))), 250) is None


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4), st.integers(0, 3)), max_size=4),
    st.integers(1, 4),
    st.integers(1, 2),
)
def test_as_many_are_counted_as_can_be_started_one_after_the_other(
    rooms: list[tuple[int, int, int]], gib: int, cores: int
) -> None:
    nodes = [
        node(f"n{i}", f"{memory}Gi", str(cpu), pods=str(pods))
        for i, (memory, cpu, pods) in enumerate(rooms)
    ]
    snapshot = cluster(nodes)
    found = count(snapshot, size("any", gib, cores * 1000))
    started = 0
    while True:
        requests = {"cpu": cores * 1000, "memory": gib * GIB, "pods": 1}
        new = Pod("default", f"p{started}", f"p{started}", requests, phase="Pending")
        feasible = evaluate(new, ClusterState(snapshot)).feasible
        if not feasible.any():
            break
        placed = replace(new, node_name=nodes[int(feasible.argmax())].name, phase="Running")
        snapshot = replace(snapshot, pods=(*snapshot.pods, placed))
        started += 1
    assert found.fits == started
    assert (found.nearest is None) == (started > 0 or not nodes)
    if found.nearest is not None:
        assert all(amount > 0 for amount in found.nearest.lacking.values())
