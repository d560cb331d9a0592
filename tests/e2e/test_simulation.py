"""The simulated cluster does what the real control plane does."""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from rebalancer.cluster.api import Api as RebalancerApi
from rebalancer.cluster.config import load_config
from rebalancer.cluster.live import LiveCluster
from rebalancer.cluster.protocols import Hold, MigrationRequest
from rebalancer.cluster.simulated import SimulatedCluster
from rebalancer.model.keys import HOSTNAME, MIGRATION_JOB_UID
from rebalancer.model.objects import ObjectKey, Pod
from rebalancer.model.snapshot import Snapshot
from tests.controlplane import builders
from tests.controlplane.api import Api, path_of
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.scenario import BIG_VM, GREEN, RED
from tests.controlplane.waiting import wait_for, wait_for_migration, wait_for_vmi
from tests.e2e.cluster_view import NAMESPACE

GOOSE = ObjectKey("default", "fedora-advanced-goose")
LOCK = Hold("hold", NAMESPACE, GREEN, "nobody", ("nobody",), "", 600, "pause")


def _affinity(kind: str, labels: Mapping[str, str]) -> Any:
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": HOSTNAME}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


UNSCHEDULABLE_PODS = {
    "wants-a-label": {"nodeSelector": {"disk": "ssd"}},
    "too-large-for-any-node": {"cpu": "64", "memory": "999Gi"},
    "too-large-for-what-is-left": {"cpu": "15900m"},
    "apart-from-vms": {"affinity": _affinity("podAntiAffinity", {"kubevirt.io": "virt-launcher"})},
    "beside-nobody": {"affinity": _affinity("podAffinity", {"no": "body"})},
    "for-the-locked-node": {"nodeSelector": {HOSTNAME: GREEN}},
}


@pytest.fixture
def live(pending_vm: ControlPlane) -> LiveCluster:
    return LiveCluster(RebalancerApi(load_config(pending_vm.kubeconfig(), None)), NAMESPACE, "me")


def _messages(snapshot: Snapshot) -> dict[str, str]:
    return {str(p.key): p.unschedulable_message for p in snapshot.pods if p.unschedulable_since}


def test_pods_that_fit_nowhere_get_the_same_messages(live: LiveCluster, api: Api) -> None:
    live.create_hold(LOCK)
    for name, fields in UNSCHEDULABLE_PODS.items():
        api.create(path_of("pods", "default"), builders.pod(name, **fields))  # type: ignore[arg-type]
    expected = wait_for(
        lambda: _messages(live.read()),
        lambda messages: len(messages) == len(UNSCHEDULABLE_PODS) + 1,
        "all pods to be tried",
    )
    snapshot = live.read()
    untold = tuple(replace(pod, unschedulable_message="") for pod in snapshot.pods)
    assert _messages(SimulatedCluster(replace(snapshot, pods=untold)).read()) == expected


def test_a_migration_leaves_the_same_objects(live: LiveCluster, api: Api) -> None:
    simulated = SimulatedCluster(live.read())
    migration = MigrationRequest("move", GOOSE, RED, labels={}, annotations={})
    live.create_migration(migration)
    simulated.create_migration(migration)
    wait_for_migration(api, "move", "Succeeded")
    wait_for_vmi(api, BIG_VM, "Running")
    simulated.advance(600)
    assert _outcome(simulated.read()) == _outcome(live.read())


def _outcome(snapshot: Snapshot) -> dict[str, object]:
    """All that does not depend on clocks and uids."""
    goose, big = (snapshot.vmi_by_key[ObjectKey("default", n)] for n in (GOOSE.name, BIG_VM))
    (migration,) = snapshot.migrations
    (target,) = (pod for pod in snapshot.pods if pod.migration_uid == migration.uid)
    state = goose.migration_state
    return {
        "phases": [phase for phase, _ in migration.phase_times],
        "state": state and (state.migration_uid == migration.uid, state.is_completed),
        "nodes": (goose.node_name, big.node_name),
        "pods": sorted((p.node_name, p.phase) for p in snapshot.pods if p.vmi_uid == goose.uid),
        "target": _rendered(target),
    }


def _rendered(target: Pod) -> Pod:
    varying = {MIGRATION_JOB_UID, "kubevirt.io/nodeName"}
    labels = {key: value for key, value in target.labels.items() if key not in varying}
    return replace(target, name="", uid="", migration_uid=None, created_at=None, labels=labels)
