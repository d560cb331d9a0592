"""Whatever goes wrong ends in a clear state and a new plan, never in a second migration of a VM."""

import threading
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.controlplane import builders
from tests.controlplane.api import Api, path_of
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.faults import (
    Answer,
    CutWatch,
    DropAnswer,
    DropRequest,
    ExpireWatch,
    Fault,
    FaultProxy,
)
from tests.controlplane.migration_scripts import MigrationScript
from tests.controlplane.scenario import BIG_VM
from tests.controlplane.waiting import wait_for, wait_for_vmi
from tests.e2e.cluster_view import Migrated, lock_pods, migrations, nodes_of_vms
from tests.e2e.command import Finished, rebalancer, start

GOOSE = "fedora-advanced-goose"
"""The VM that the cheapest plan moves."""
VMIMS = "/virtualmachineinstancemigrations"


@pytest.fixture
def proxy(pending_vm: ControlPlane) -> Iterator[FaultProxy]:
    proxy = FaultProxy(pending_vm)
    yield proxy
    proxy.stop()


def run(control_plane: ControlPlane) -> Finished:
    return rebalancer("run", "-o", "json", kubeconfig=control_plane.kubeconfig())


def endings(done: Finished) -> list[str]:
    return [outcome["ending"] for outcome in done.document["outcomes"]]


def assert_solved_with_one_migration(api: Api) -> None:
    wait_for_vmi(api, BIG_VM, "Running")
    assert migrations(api) == [Migrated(GOOSE, "Succeeded")]
    assert lock_pods(api) == []


@pytest.mark.parametrize(
    ("method", "path", "fault"),
    [
        ("POST", VMIMS, Answer(409)),
        ("POST", VMIMS, Answer(429, retry_after_seconds=1)),
        ("POST", VMIMS, Answer(500)),
        ("POST", VMIMS, DropRequest()),
        ("POST", VMIMS, DropAnswer()),
        ("POST", "/pods", DropAnswer()),
        ("GET", "/api/v1/pods", Answer(410)),
        ("GET", "/api/v1/nodes", Answer(429, retry_after_seconds=1)),
        ("GET", VMIMS, Answer(500)),
        ("GET", VMIMS, DropRequest()),
        ("GET", f"{VMIMS}.*watch", CutWatch()),
        ("GET", f"{VMIMS}.*watch", ExpireWatch()),
        ("DELETE", "/pods/hold-", Answer(500)),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_fault_of_the_api_leads_to_one_migration_all_the_same(
    proxy: FaultProxy, api: Api, method: str, path: str, fault: Fault
) -> None:
    proxy.inject(method, path, fault)
    done = rebalancer("run", "-o", "json", kubeconfig=proxy.kubeconfig())
    assert done.code == 0, done.stderr
    assert endings(done) == ["bound"]
    assert_solved_with_one_migration(api)


def test_an_api_that_stays_down_ends_the_cycle_with_its_name(proxy: FaultProxy, api: Api) -> None:
    proxy.inject("GET", "/api/v1/nodes", Answer(503), times=1000)
    done = rebalancer("run", kubeconfig=proxy.kubeconfig())
    assert done.code == 1
    assert "error: list nodes: HTTP 503" in done.stderr
    assert migrations(api) == []


def test_a_refused_migration_is_not_tried_again_and_another_vm_is_planned(
    proxy: FaultProxy, api: Api
) -> None:
    """kubevirt/kubevirt#2495: an admission webhook refuses whatever the plan says."""
    proxy.inject("POST", VMIMS, Answer(403))
    done = rebalancer("run", "-o", "json", kubeconfig=proxy.kubeconfig())
    assert done.code == 0, done.stderr
    assert "refused" in done.stderr
    ((vm, phase),) = migrations(api)
    assert vm != GOOSE
    assert phase == "Succeeded"
    wait_for_vmi(api, BIG_VM, "Running")


def test_after_a_failed_migration_another_vm_is_moved(pending_vm: ControlPlane, api: Api) -> None:
    pending_vm.node_agent.script(GOOSE, MigrationScript(outcome="fail"))
    done = run(pending_vm)
    assert done.code == 0, done.stderr
    assert endings(done) == ["bound"]
    by_phase = Counter(phase for _, phase in migrations(api))
    assert by_phase == {"Failed": 1, "Succeeded": 1}
    assert max(Counter(vm for vm, _ in migrations(api)).values()) == 1
    wait_for_vmi(api, BIG_VM, "Running")
    assert lock_pods(api) == []


def test_when_every_migration_fails_the_goal_is_unmet_and_nothing_is_left_over(
    pending_vm: ControlPlane, api: Api
) -> None:
    pending_vm.node_agent.script_others(MigrationScript(outcome="fail"))
    before = nodes_of_vms(api)
    done = run(pending_vm)
    assert done.code == 4, done.stderr
    assert nodes_of_vms(api) == before
    assert max(Counter(vm for vm, _ in migrations(api)).values()) == 1
    assert lock_pods(api) == []


def test_a_stalled_migration_is_left_to_kubevirt_and_planned_around(
    pending_vm: ControlPlane, api: Api
) -> None:
    set_migration_configuration(api, completionTimeoutPerGiB=1, progressTimeout=1)
    pending_vm.node_agent.script(GOOSE, MigrationScript(outcome="stall"))
    done = run(pending_vm)
    assert done.code == 0, done.stderr
    assert "past its deadline" in done.stderr
    assert sorted(phase for _, phase in migrations(api)) == ["Running", "Succeeded"]
    assert max(Counter(vm for vm, _ in migrations(api)).values()) == 1
    wait_for_vmi(api, BIG_VM, "Running")


def set_migration_configuration(api: Api, **settings: int) -> None:
    api.patch(
        path_of("kubevirts", "kubevirt", "kubevirt"),
        {"spec": {"configuration": {"migrations": settings}}},
    )


def test_when_the_moving_vm_vanishes_its_room_serves_the_pending_one(
    pending_vm: ControlPlane, api: Api
) -> None:
    pending_vm.node_agent.script(GOOSE, MigrationScript(duration_seconds=60))
    process = start(["run"], pending_vm.kubeconfig())
    wait_for(lambda: migrations(api), lambda found: Migrated(GOOSE, "Running") in found, "a move")
    api.delete(path_of("virtualmachineinstances", "default", GOOSE))
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    wait_for_vmi(api, BIG_VM, "Running")
    assert [vm for vm, _ in migrations(api) if vm != GOOSE] == []
    assert lock_pods(api) == []


def test_when_the_pending_vm_vanishes_nothing_more_is_started(
    pending_vm: ControlPlane, api: Api
) -> None:
    pending_vm.node_agent.script(GOOSE, MigrationScript(duration_seconds=4))
    process = start(["run"], pending_vm.kubeconfig())
    wait_for(lambda: migrations(api), lambda found: Migrated(GOOSE, "Running") in found, "a move")
    api.delete(path_of("virtualmachineinstances", "default", BIG_VM))
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    assert "no longer waits" in output
    assert [vm for vm, _ in migrations(api)] == [GOOSE]
    assert lock_pods(api) == []


def test_after_a_crash_the_next_run_adopts_what_is_in_flight(
    pending_vm: ControlPlane, api: Api
) -> None:
    pending_vm.node_agent.script(GOOSE, MigrationScript(duration_seconds=8))
    process = start(["run"], pending_vm.kubeconfig())
    wait_for(lambda: migrations(api), lambda found: Migrated(GOOSE, "Running") in found, "a move")
    process.kill()
    process.wait()
    # The dead one's Lease runs out on its own.
    codes = wait_for(lambda: run(pending_vm), lambda done: done.code != 1, "the Lease", 60)
    assert codes.code == 0, codes.stderr
    assert_solved_with_one_migration(api)


def test_newcomers_do_not_get_the_room_that_is_made(pending_vm: ControlPlane, api: Api) -> None:
    """siutsin/otaru#2804, #2805: what was freed was refilled at once."""
    pending_vm.node_agent.script(GOOSE, MigrationScript(duration_seconds=4))
    freed = nodes_of_vms(api)[GOOSE]
    over = threading.Event()
    arrivals = threading.Thread(target=keep_arriving, args=(pending_vm, str(freed), over))
    arrivals.start()
    try:
        done = run(pending_vm)
    finally:
        over.set()
        arrivals.join()
    assert done.code == 0, done.stderr
    wait_for_vmi(api, BIG_VM, "Running")
    assert nodes_of_vms(api)[BIG_VM] == freed
    newcomers = api.list(path_of("pods", "default"), labelSelector="role=newcomer")
    assert len(newcomers) > 5
    assert [pod["spec"].get("nodeName") for pod in newcomers if pod["spec"].get("nodeName")] == []


def keep_arriving(control_plane: ControlPlane, node_name: str, over: threading.Event) -> None:
    """Pods that each fit into the hole once it is there, but not before, several a second."""
    with control_plane.api() as api:
        number = 0
        while not over.wait(0.2):
            number += 1
            newcomer = builders.pod(
                f"newcomer-{number}",
                memory="14000Mi",
                labels={"role": "newcomer"},
                nodeSelector={"kubernetes.io/hostname": node_name},
            )
            api.create(path_of("pods", "default"), newcomer)
