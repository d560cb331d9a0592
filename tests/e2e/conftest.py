"""The request's cluster with its 16 GiB VM pending."""

from collections.abc import Iterator

import pytest

from tests.controlplane.api import Api, path_of
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.scenario import start_big_vm
from tests.controlplane.waiting import wait_for
from tests.e2e.cluster_view import NAMESPACE, unschedulable_message


@pytest.fixture
def api(control_plane: ControlPlane) -> Iterator[Api]:
    with control_plane.api() as api:
        yield api


@pytest.fixture
def pending_vm(request_cluster: ControlPlane, api: Api) -> ControlPlane:
    """Six VMs run, the seventh fits nowhere, and the rebalancer has its namespace."""
    api.create(
        path_of("namespaces"),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
    )
    start_big_vm(request_cluster)
    # Its first message may still tell of the taint of a cordon that has just been lifted.
    wait_for(
        lambda: unschedulable_message(api),
        lambda message: "3 Insufficient memory" in message,
        "the big VM to be unschedulable for memory on three nodes",
    )
    return request_cluster
