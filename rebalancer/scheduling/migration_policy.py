"""Which settings hold for a VM's migrations: the KubeVirt CR's, or those of a MigrationPolicy."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from rebalancer.model.objects import (
    EMPTY,
    MigrationConfiguration,
    MigrationPolicy,
    VirtualMachineInstance,
)
from rebalancer.model.snapshot import Snapshot


def migration_configuration(
    vmi: VirtualMachineInstance, snapshot: Snapshot
) -> MigrationConfiguration:
    """The KubeVirt CR's settings with those of the VMI's policy, if it has one, over them.

    Source: matchMigrationPolicy in kubevirt/kubevirt v1.8.4
    pkg/virt-controller/watch/migration/migration.go.
    """
    configuration = snapshot.migration_configuration
    labels = snapshot.labels_by_namespace.get(vmi.namespace, EMPTY)
    policy = _most_detailed(snapshot.migration_policies, vmi.labels, labels)
    if policy is None:
        return configuration
    settings = {
        "bandwidth_bytes_per_second": policy.bandwidth_bytes_per_second,
        "completion_timeout_seconds_per_gib": policy.completion_timeout_seconds_per_gib,
    }
    return replace(
        configuration, **{name: value for name, value in settings.items() if value is not None}
    )


class _Detail(NamedTuple):
    """How closely a policy describes a VMI; the most detailed one counts."""

    labels: int
    vmi_labels: int


def _most_detailed(
    policies: Iterable[MigrationPolicy],
    vmi_labels: Mapping[str, str],
    namespace_labels: Mapping[str, str],
) -> MigrationPolicy | None:
    """Of those equally detailed, the first by name.

    Source: matchPolicy in migrationpolicy.go there; a VMI without labels is one that every policy
    matches.
    """
    matching = [
        (-detail.labels, -detail.vmi_labels, policy.name, policy)
        for policy in policies
        if (detail := _detail(policy, vmi_labels, namespace_labels)) is not None
    ]
    return min(matching)[-1] if matching else None


def _detail(
    policy: MigrationPolicy, vmi_labels: Mapping[str, str], namespace_labels: Mapping[str, str]
) -> _Detail | None:
    """None for a policy that does not match."""
    if not policy.has_selectors:
        return None
    if not vmi_labels:
        return _Detail(0, 0)
    of_vmi, of_namespace = policy.vmi_labels, policy.namespace_labels
    if of_vmi.items() <= vmi_labels.items() and of_namespace.items() <= namespace_labels.items():
        return _Detail(len(of_vmi) + len(of_namespace), len(of_vmi))
    return None
