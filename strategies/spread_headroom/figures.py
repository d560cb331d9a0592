"""The figures of headroom for the settings of this strategy."""

from collections.abc import Mapping, Sequence

from rebalancer.headroom.capacity import SizeCapacity, VMSize, capacity
from rebalancer.headroom.failover import Failover, failover, node_domains, zone_domains
from rebalancer.model.objects import LauncherConfiguration, LauncherSpec
from rebalancer.planning.view import View
from rebalancer.scheduling.launcher_requests import launcher_requests
from rebalancer.scheduling.state import ClusterState
from rebalancer_strategies.spread_headroom.settings import (
    FailureDomain,
    HeadroomSettings,
    SizeSettings,
)


def capacities(sizes: Sequence[SizeSettings], view: View) -> tuple[SizeCapacity, ...]:
    configuration = view.snapshot.launcher_configuration
    return capacity(view.state, [vm_size(size, configuration) for size in sizes])


def vm_size(size: SizeSettings, configuration: LauncherConfiguration) -> VMSize:
    spec = LauncherSpec(guest_memory_bytes=size.memory_bytes, vcpus=size.vcpus)
    return VMSize(size.name, launcher_requests(spec, configuration), size.node_selector)


def losses(state: ClusterState, settings: HeadroomSettings) -> Failover:
    return failover(state, domains(state, settings), min_priority=settings.min_priority)


def domains(state: ClusterState, settings: HeadroomSettings) -> Mapping[str, Sequence[int]]:
    """Indexes of the nodes of each node or zone by its name."""
    is_zone = settings.failure_domain is FailureDomain.ZONE
    return zone_domains(state) if is_zone else node_domains(state)
