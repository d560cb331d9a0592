"""Clusters that are no use to whoever acts on them."""

from contextlib import AbstractContextManager

from rebalancer.cluster.protocols import Leadership
from rebalancer.cluster.request_scenario import request_cluster
from rebalancer.cluster.simulated import SimulatedCluster
from rebalancer.errors import NotLeaderError
from rebalancer.model.snapshot import Snapshot


class FailingCluster(SimulatedCluster):
    """It cannot be read."""

    def __init__(self, error: Exception) -> None:
        super().__init__(request_cluster().read())
        self.error = error

    def read(self) -> Snapshot:
        raise self.error


class StandbyCluster(SimulatedCluster):
    """Another rebalancer acts on it."""

    def __init__(self) -> None:
        super().__init__(request_cluster().read())

    def leadership(self) -> AbstractContextManager[Leadership]:
        raise NotLeaderError("other_1 holds the Lease x/kubevirt-rebalancer")
