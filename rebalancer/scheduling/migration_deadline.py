"""How long a migration may take before it counts as stalled."""

from datetime import timedelta

from rebalancer.model.objects import (
    Migration,
    MigrationState,
    VirtualMachineInstance,
)
from rebalancer.model.snapshot import Snapshot
from rebalancer.scheduling.migration_policy import migration_configuration


def deadline_seconds(vmi: VirtualMachineInstance, snapshot: Snapshot) -> int:
    """KubeVirt's own limits, one after the other: completion by guest size, then progress.

    Source: kubevirt/kubevirt v1.8.4 pkg/virt-handler/migration-source.go and
    pkg/virt-launcher/virtwrap/live-migration-source.go; virt-handler aborts by then, so a
    migration that lasts longer has nobody left who looks after it. What the VMI notes of its
    present migration goes before what would hold for the next one.
    """
    configuration = migration_configuration(vmi, snapshot)
    noted = vmi.migration_state or MigrationState()
    per_gib = noted.completion_timeout_seconds_per_gib
    if per_gib is None:
        per_gib = configuration.completion_timeout_seconds_per_gib
    progress = noted.progress_timeout_seconds
    if progress is None:
        progress = configuration.progress_timeout_seconds
    gib = -(-(vmi.guest_memory_bytes or 0) // 2**30)
    return max(gib, 1) * per_gib + progress


def is_overdue(migration: Migration, snapshot: Snapshot) -> bool:
    """Whether an unfinished migration is past its deadline; one without a VMI to judge by is."""
    vmi = snapshot.vmi_by_key.get(migration.vmi_key)
    if vmi is None:
        return True
    if migration.created_at is None:
        return False
    limit = timedelta(seconds=deadline_seconds(vmi, snapshot))
    return snapshot.taken_at - migration.created_at > limit
