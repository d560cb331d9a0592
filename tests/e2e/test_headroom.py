"""Headroom and balance on the real control plane, and that a second run then does nothing."""

from pathlib import Path

import pytest

from tests.controlplane import builders
from tests.controlplane.api import Api, path_of
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.scenario import add_nodes, start_vmis
from tests.e2e.cluster_view import NAMESPACE, migrations, nodes_of_vms
from tests.e2e.command import Finished, rebalancer

POLICY = """\
apiVersion: rebalancer/v1alpha1
kind: RebalancerPolicy
strategies:
  SpreadHeadroom:
    mode: Automatic
    settings: {}
"""


NODES = ("n1", "n2", "n3")


@pytest.fixture
def nodes(empty_cluster: ControlPlane, api: Api) -> ControlPlane:
    """Three nodes of 16Gi, and the rebalancer's namespace."""
    api.create(
        path_of("namespaces"),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
    )
    add_nodes(api, [builders.node(name, memory="16Gi") for name in NODES])
    return empty_cluster


def run(nodes: ControlPlane, folder: Path, settings: str) -> Finished:
    policy = folder / "policy.yaml"
    policy.write_text(POLICY.format(settings))
    return rebalancer("run", "--policy", str(policy), "-o", "json", kubeconfig=nodes.kubeconfig())


def test_a_size_that_fits_nowhere_gets_room_and_keeps_it(
    nodes: ControlPlane, api: Api, tmp_path: Path
) -> None:
    start_vmis(api, {name: [builders.vmi(f"on-{name}", guest_memory="6Gi")] for name in NODES})
    settings = (
        "{headroom: {failureDomain: None, sizes: [{name: large, memory: 12Gi}]},"
        " balance: {resources: [memory], onlyAbove: 0.5}}"
    )
    done = run(nodes, tmp_path, settings)
    assert done.code == 0, done.stderr
    assert len(migrations(api)) == 1
    assert sorted(map(len, by_node(api).values())) == [1, 2]
    again = run(nodes, tmp_path, settings)
    assert (again.code, again.document["plan"]["moves"]) == (0, [])


def test_vms_of_a_full_node_are_spread_and_then_stay(
    nodes: ControlPlane, api: Api, tmp_path: Path
) -> None:
    start_vmis(api, {"n1": [builders.vmi(f"v{i}", guest_memory="3Gi") for i in range(4)]})
    settings = "{balance: {resources: [memory], onlyAbove: 0.5}}"
    done = run(nodes, tmp_path, settings)
    assert done.code == 0, done.stderr
    assert sorted(map(len, by_node(api).values())) == [1, 1, 2]
    assert {migrated.phase for migrated in migrations(api)} == {"Succeeded"}
    again = run(nodes, tmp_path, settings)
    assert (again.code, again.document["plan"]["moves"]) == (0, [])


def by_node(api: Api) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for vm, node in nodes_of_vms(api).items():
        assert node is not None
        found.setdefault(node, []).append(vm)
    return found
