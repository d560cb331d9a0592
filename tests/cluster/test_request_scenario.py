"""The demo's cluster against the request that it retells."""

import pytest

from rebalancer.cluster.request_scenario import request_cluster
from rebalancer.model.objects import ObjectKey
from rebalancer.scheduling.state import ClusterState

VMS_BY_WORKER = {
    "worker-green.shift.toca.local": {"centos-stream8-empty-whitefish", "centos7-loud-bear"},
    "worker-blue.shift.toca.local": {"fedora-advanced-goose", "fedora-civil-spoonbill"},
    "worker-red.shift.toca.local": {"fedora-frozen-stingray", "centos-stream9-useless-raven"},
}
BIG_VM = ObjectKey("default", "rhel7-red-llama")


def test_two_vms_of_8_gib_run_on_each_of_three_workers() -> None:
    snapshot = request_cluster().read()
    running = {
        worker: {vmi.name for vmi in snapshot.vmis if vmi.node_name == worker}
        for worker in VMS_BY_WORKER
    }
    assert running == VMS_BY_WORKER
    assert {vmi.guest_memory_bytes for vmi in snapshot.vmis if vmi.node_name} == {8 * 2**30}


@pytest.mark.parametrize(
    ("worker", "requested_mib", "percent"),
    [("green", 19858, 64), ("blue", 18024, 58), ("red", 20166, 64)],
)
def test_the_workers_requests_are_the_requests_figures(
    worker: str, requested_mib: int, percent: int
) -> None:
    state = ClusterState(request_cluster().read())
    index = state.index[f"worker-{worker}.shift.toca.local"]
    requested = int(state.requested("memory")[index])
    assert requested == requested_mib * 2**20
    assert requested * 100 // int(state.allocatable("memory")[index]) == percent


def test_the_seventh_vm_waits_since_14_minutes_with_the_schedulers_message() -> None:
    snapshot = request_cluster().read()
    (pod,) = snapshot.launchers_by_vmi[snapshot.vmi_by_key[BIG_VM].uid]
    assert pod.node_name is None
    assert pod.unschedulable_since is not None
    assert (snapshot.taken_at - pod.unschedulable_since).total_seconds() == 14 * 60
    assert pod.unschedulable_message == (
        "0/7 nodes are available: 1 node(s) were unschedulable, 3 Insufficient memory,"
        " 3 node(s) had untolerated taint(s). no new claims to deallocate,"
        " preemption: 0/7 nodes are available:"
        " 3 No preemption victims found for incoming pod,"
        " 4 Preemption is not helpful for scheduling."
    )


def test_nothing_happens_in_it_by_itself() -> None:
    simulated = request_cluster()
    simulated.advance(24 * 3600)
    assert simulated.journal == ()
