"""The headroom that there is, by the settings of this strategy; no moves of it may cost any."""

from collections.abc import Mapping, Sequence
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from rebalancer.headroom.capacity import SizeCapacity, VMSize, capacity
from rebalancer.headroom.failover import Failover, Verdict, failover, node_domains, zone_domains
from rebalancer.model.objects import LauncherSpec
from rebalancer.model.plan import Move, Proposal
from rebalancer.planning.replay import carried_out
from rebalancer.planning.view import View
from rebalancer.scheduling.launcher_requests import launcher_requests
from rebalancer_strategies.spread_headroom.settings import (
    FailureDomain,
    HeadroomSettings,
    SizeSettings,
)


class Headroom(Struct, frozen=True, dict=True):
    settings: HeadroomSettings
    view: View

    @cached_property
    def sizes(self) -> tuple[VMSize, ...]:
        """What is configured, in the same order."""
        configuration = self.view.snapshot.launcher_configuration
        return tuple(
            VMSize(
                size.name,
                launcher_requests(_spec(size), configuration),
                size.node_selector,
            )
            for size in self.settings.sizes
        )

    @cached_property
    def capacities(self) -> tuple[SizeCapacity, ...]:
        """One for each size, in the same order."""
        return capacity(self.view.state, self.sizes)

    @cached_property
    def domains(self) -> Mapping[str, Sequence[int]]:
        """Indexes of the nodes of each node or zone by its name."""
        is_zone = self.settings.failure_domain is FailureDomain.ZONE
        return (zone_domains if is_zone else node_domains)(self.view.state)

    @cached_property
    def failover(self) -> Failover:
        return failover(self.view.state, self.domains, min_priority=self.settings.min_priority)

    def left_by(self, proposal: Proposal) -> "Headroom":
        """What the next goal sees."""
        view = self.view.after(proposal)
        return self if view is self.view else replace(self, view=view)

    def after(self, moves: Sequence[Move]) -> "Headroom":
        """As it is once the moves are done."""
        snapshot = carried_out(self.view.snapshot, moves)
        return replace(self, view=replace(self.view, snapshot=snapshot))

    def is_kept_by(self, moves: Sequence[Move]) -> bool:
        return self.is_kept(self.after(moves))

    def is_kept(self, then: "Headroom") -> bool:
        """Whether as many VMs survive each loss then as now, and as many of each size fit."""
        sizes = zip(self.settings.sizes, self.capacities, then.capacities, strict=True)
        if any(after.fits < min(now.fits, size.count) for size, now, after in sizes):
            return False
        if self.settings.failure_domain is FailureDomain.NONE:
            return True
        return _is_no_worse(self.failover, then.failover)


def _spec(size: SizeSettings) -> LauncherSpec:
    return LauncherSpec(guest_memory_bytes=size.memory_bytes, vcpus=size.vcpus)


def _is_no_worse(now: Failover, then: Failover) -> bool:
    """Whether no loss leaves more VMs down, or less surely none, than it did."""
    before = {loss.domain: loss for loss in now.losses}
    return all(
        len(loss.left_down) <= len(before[loss.domain].left_down)
        and (
            loss.verdict is Verdict.SURVIVES or before[loss.domain].verdict is not Verdict.SURVIVES
        )
        for loss in then.losses
    )
