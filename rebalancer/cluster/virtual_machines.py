"""KubeVirt's objects on the wire to those of the model; each function raises FieldError."""

from typing import Any, NamedTuple

import msgspec

from rebalancer.cluster import wire
from rebalancer.cluster.constraints import Constraints
from rebalancer.cluster.fields import amount, condition, required
from rebalancer.cluster.launchers import launcher_configuration, launcher_spec
from rebalancer.model.objects import (
    EMPTY,
    Condition,
    LauncherConfiguration,
    LauncherSpec,
    Migration,
    MigrationConfiguration,
    MigrationPolicy,
    MigrationState,
    VirtualMachineInstance,
)

_CHANGES = ("HotVCPUChange", "HotMemoryChange", "VolumesChange", "MigrationRequired")
"""Source: isHotplugInProgress and isVolumesUpdateInProgress in kubevirt/kubevirt v1.8.4
pkg/virt-controller/watch/workload-updater/workload-updater.go."""


class KubeVirtSettings(NamedTuple):
    """What is read of the KubeVirt CR."""

    migrations: MigrationConfiguration
    launchers: LauncherConfiguration


class VMIConverter:
    """Converts the VMIs of one reading; what many have in common is kept once."""

    def __init__(self) -> None:
        self._constraints = Constraints()
        self._launchers: dict[bytes, LauncherSpec] = {}

    def convert(self, vmi: wire.VirtualMachineInstance) -> VirtualMachineInstance:
        """Raises: FieldError."""
        metadata = vmi.metadata or wire.Metadata()
        spec = vmi.spec or wire.VirtualMachineInstanceSpec()
        status = vmi.status or wire.VirtualMachineInstanceStatus()
        domain = spec.domain or wire.Domain()
        paused = condition(status.conditions, "Paused")
        launcher = launcher_spec(metadata, spec, status, self._constraints)
        return VirtualMachineInstance(
            namespace=required(metadata.namespace, "metadata.namespace"),
            name=required(metadata.name, "metadata.name"),
            uid=required(metadata.uid, "metadata.uid"),
            phase=status.phase or "",
            node_name=status.node_name or None,
            labels=metadata.labels or EMPTY,
            annotations=metadata.annotations or EMPTY,
            guest_memory_bytes=_guest_memory_bytes(domain, status),
            architecture=spec.architecture or "",
            has_host_model_cpu=(domain.cpu and domain.cpu.model) in {None, "", "host-model"},
            node_selector=spec.node_selector or EMPTY,
            # As bytes, since a struct with mappings cannot be a key.
            launcher=self._launchers.setdefault(msgspec.msgpack.encode(launcher), launcher),
            live_migratable=_live_migratable(status),
            pending_changes=_pending_changes(status),
            is_paused=paused is not None and paused.status == "True",
            utility_volumes=tuple(volume.name or "" for volume in spec.utility_volumes or ()),
            running_backup=_running_backup(status),
            migration_state=_migration_state(status),
            eviction_strategy=spec.eviction_strategy or "",
            evacuation_node_name=status.evacuation_node_name or "",
            is_terminating=metadata.deletion_timestamp is not None,
        )


def convert_migration(migration: wire.Migration) -> Migration:
    metadata = migration.metadata or wire.Metadata()
    spec = migration.spec or wire.MigrationSpec()
    status = migration.status or wire.MigrationStatus()
    return Migration(
        namespace=required(metadata.namespace, "metadata.namespace"),
        name=required(metadata.name, "metadata.name"),
        uid=required(metadata.uid, "metadata.uid"),
        vmi_name=required(spec.vmi_name, "spec.vmiName"),
        phase=status.phase or "",
        labels=metadata.labels or EMPTY,
        annotations=metadata.annotations or EMPTY,
        created_at=metadata.creation_timestamp,
        phase_times=tuple(
            (transition.phase or "", transition.phase_transition_timestamp)
            for transition in status.phase_transition_timestamps or ()
            if transition.phase_transition_timestamp is not None
        ),
        failure_reason=(status.migration_state and status.migration_state.failure_reason) or "",
        source_node_name=(status.migration_state and status.migration_state.source_node) or "",
    )


def convert_kubevirt(kubevirt: wire.KubeVirt) -> KubeVirtSettings:
    """Settings that the CR lacks are KubeVirt's defaults."""
    spec = kubevirt.spec or wire.KubeVirtSpec()
    configuration = spec.configuration or wire.KubeVirtConfiguration()
    return KubeVirtSettings(
        _migration_configuration(configuration), launcher_configuration(configuration)
    )


def _migration_configuration(configuration: wire.KubeVirtConfiguration) -> MigrationConfiguration:
    migrations = configuration.migrations or wire.MigrationConfiguration()
    bandwidth = migrations.bandwidth_per_migration
    settings: dict[str, Any] = {
        "parallel_migrations_per_cluster": migrations.parallel_migrations_per_cluster,
        "parallel_outbound_migrations_per_node": migrations.parallel_outbound_migrations_per_node,
        "completion_timeout_seconds_per_gib": migrations.completion_timeout_per_gib,
        "progress_timeout_seconds": migrations.progress_timeout,
        "node_drain_taint_key": migrations.node_drain_taint_key or None,
        "bandwidth_bytes_per_second": None
        if bandwidth is None
        else amount(bandwidth, "spec.configuration.migrations.bandwidthPerMigration"),
    }
    return MigrationConfiguration(
        **{name: value for name, value in settings.items() if value is not None}
    )


def convert_migration_policy(policy: wire.MigrationPolicy) -> MigrationPolicy:
    metadata = policy.metadata or wire.Metadata()
    spec = policy.spec or wire.MigrationPolicySpec()
    selectors = spec.selectors or wire.MigrationPolicySelectors()
    bandwidth = spec.bandwidth_per_migration
    return MigrationPolicy(
        name=required(metadata.name, "metadata.name"),
        has_selectors=spec.selectors is not None,
        vmi_labels=selectors.virtual_machine_instance_selector or EMPTY,
        namespace_labels=selectors.namespace_selector or EMPTY,
        bandwidth_bytes_per_second=None
        if bandwidth is None
        else amount(bandwidth, "spec.bandwidthPerMigration"),
        completion_timeout_seconds_per_gib=spec.completion_timeout_per_gib,
    )


def _guest_memory_bytes(
    domain: wire.Domain, status: wire.VirtualMachineInstanceStatus
) -> int | None:
    """What the guest has now; memory may have been plugged in since its start.

    Source: GetVirtualMemory in kubevirt/kubevirt v1.8.4
    pkg/virt-launcher/virtwrap/converter/vcpu/vcpu.go: guest, else request, else limit.
    """
    memory = status.memory or wire.MemoryStatus()
    domain_memory = domain.memory or wire.DomainMemory()
    resources = domain.resources or wire.Resources()
    candidates = {
        "status.memory.guestCurrent": memory.guest_current,
        "spec.domain.memory.guest": domain_memory.guest,
        "spec.domain.resources.requests.memory": (resources.requests or {}).get("memory"),
        "spec.domain.resources.limits.memory": (resources.limits or {}).get("memory"),
    }
    for field, quantity in candidates.items():
        if quantity is not None:
            return amount(quantity, field)
    return None


def _live_migratable(status: wire.VirtualMachineInstanceStatus) -> Condition | None:
    found = condition(status.conditions, "LiveMigratable")
    if found is None:
        return None
    return Condition(found.status or "", found.reason or "", found.message or "")


def _pending_changes(status: wire.VirtualMachineInstanceStatus) -> tuple[str, ...]:
    return tuple(
        found.type
        for found in status.conditions or ()
        if found.type in _CHANGES and found.status != "False"
    )


def _running_backup(status: wire.VirtualMachineInstanceStatus) -> str:
    """Source: IsBackupInProgress in kubevirt/kubevirt v1.8.4 pkg/util/migrations/migrations.go."""
    tracking = status.changed_block_tracking or wire.ChangedBlockTracking()
    backup = tracking.backup_status or wire.BackupStatus()
    return "" if backup.completed else backup.backup_name or ""


def _migration_state(status: wire.VirtualMachineInstanceStatus) -> MigrationState | None:
    state = status.migration_state
    if state is None:
        return None
    configuration = state.migration_configuration or wire.MigrationConfiguration()
    return MigrationState(
        migration_uid=state.migration_uid or "",
        is_completed=bool(state.completed),
        is_failed=bool(state.failed),
        completion_timeout_seconds_per_gib=configuration.completion_timeout_per_gib,
        progress_timeout_seconds=configuration.progress_timeout,
    )
