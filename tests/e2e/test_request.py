"""The request's scenario, solved by itself on the real control plane."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.controlplane.api import Api, path_of
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.scenario import BIG_VM
from tests.controlplane.waiting import wait_for, wait_for_vmi
from tests.e2e.cluster_view import (
    Migrated,
    lock_pods,
    migrations,
    nodes_of_vms,
    unschedulable_message,
)
from tests.e2e.command import rebalancer, start


@contextmanager
def expect_one_migration(api: Api) -> Iterator[None]:
    """Whatever happens inside must be the one migration that makes room, and nothing else."""
    message = unschedulable_message(api)
    assert "3 Insufficient memory" in message
    assert "1 node(s) were unschedulable" in message
    assert "3 node(s) had untolerated taint(s)" in message
    before = nodes_of_vms(api)
    yield
    after = nodes_of_vms(api)
    (migrated,) = migrations(api)
    assert migrated.phase == "Succeeded"
    untouched = set(before) - {BIG_VM, migrated.vm}
    assert len(untouched) == 5
    assert {vm: after[vm] for vm in untouched} == {vm: before[vm] for vm in untouched}
    assert after[migrated.vm] != before[migrated.vm]
    assert after[BIG_VM] == before[migrated.vm]
    assert lock_pods(api) == []


def test_run_makes_room_with_one_migration_and_then_does_nothing(
    pending_vm: ControlPlane, api: Api
) -> None:
    kubeconfig = pending_vm.kubeconfig()
    with expect_one_migration(api):
        done = rebalancer("run", "-o", "json", kubeconfig=kubeconfig)
        assert done.code == 0, done.stderr
        wait_for_vmi(api, BIG_VM, "Running")
    assert [outcome["ending"] for outcome in done.document["outcomes"]] == ["bound"]

    again = rebalancer("run", "-o", "json", kubeconfig=kubeconfig)

    assert again.code == 0, again.stderr
    assert again.document["plan"]["moves"] == []
    assert len(migrations(api)) == 1


def test_serve_makes_room_by_itself_and_stops_when_told(
    pending_vm: ControlPlane, api: Api, tmp_path: Path
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "apiVersion: rebalancer/v1alpha1\n"
        "kind: RebalancerPolicy\n"
        "schedule: {intervalSeconds: 1, jitterSeconds: 0}\n"
    )
    with expect_one_migration(api):
        server = start(["serve", "--policy", str(policy)], pending_vm.kubeconfig())
        try:
            wait_for_vmi(api, BIG_VM, "Running")
            wait_for(lambda: lock_pods(api), lambda pods: not pods, "the hold to be released")
        finally:
            server.send_signal(signal.SIGTERM)
            output, _ = server.communicate(timeout=60)
    assert server.returncode == 0, output
    assert "is bound to" in output


def test_recommend_shows_the_plan_and_moves_nothing(pending_vm: ControlPlane, api: Api) -> None:
    mode = {"REBALANCER_STRATEGIES__FIT_PENDING_VMS__MODE": "Recommend"}
    done = rebalancer("run", "-o", "json", kubeconfig=pending_vm.kubeconfig(), env=mode)
    assert done.code == 4, done.stderr
    assert len(done.document["plan"]["moves"]) == 1
    assert migrations(api) == []
    assert lock_pods(api) == []


def test_plan_tells_by_its_exit_code_that_there_is_something_to_do(
    pending_vm: ControlPlane,
) -> None:
    detailed = rebalancer("plan", "--detailed-exitcode", kubeconfig=pending_vm.kubeconfig())
    assert detailed.code == 3, detailed.stdout
    assert "planned on worker-" in detailed.stdout
    assert "proven cheapest" in detailed.stdout


def test_two_rebalancers_at_once_start_one_migration(pending_vm: ControlPlane, api: Api) -> None:
    kubeconfig = pending_vm.kubeconfig()
    both = [start(["run"], kubeconfig) for _ in range(2)]
    outputs = [process.communicate(timeout=120)[0] for process in both]
    codes = [process.returncode for process in both]
    assert len(migrations(api)) == 1, outputs
    # The second either finds the Lease taken, or comes late enough to find nothing left to do.
    assert 0 in codes, outputs
    for code, output in zip(codes, outputs, strict=True):
        assert code == 0 or "holds the Lease" in output


def test_the_migration_bears_what_it_is_for(pending_vm: ControlPlane, api: Api) -> None:
    done = rebalancer("run", "-o", "json", kubeconfig=pending_vm.kubeconfig())
    (migration,) = api.list(path_of("virtualmachineinstancemigrations"))
    (move,) = done.document["plan"]["moves"]
    assert migration["metadata"]["labels"]["rebalancer/plan-id"] == done.document["plan"]["id"]
    assert migration["spec"]["addedNodeSelector"] == {"kubernetes.io/hostname": move["target"]}
    assert Migrated(move["name"], "Succeeded") in migrations(api)


def test_events_tell_why_a_vm_moves_and_that_the_other_has_its_node(
    pending_vm: ControlPlane, api: Api
) -> None:
    done = rebalancer("run", "-o", "json", kubeconfig=pending_vm.kubeconfig())
    assert "event-lost" not in done.stderr
    (move,) = done.document["plan"]["moves"]
    ours = api.list(path_of("events", "default"), fieldSelector="source=kubevirt-rebalancer")
    assert {(each["involvedObject"]["name"], each["reason"]) for each in ours} == {
        (move["name"], "RebalanceMigration"),
        (BIG_VM, "RebalanceBound"),
    }
    kubectl = [str(pending_vm.kubectl), f"--kubeconfig={pending_vm.kubeconfig()}"]
    described = subprocess.run(
        [*kubectl, "describe", "vmi", move["name"]], capture_output=True, text=True, check=True
    )
    assert f"by FitPendingVMs for default/{BIG_VM}" in described.stdout
