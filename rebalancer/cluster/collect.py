"""Objects of all kinds to a snapshot."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from rebalancer.cluster.kinds import (
    CLAIM,
    CSI_DRIVER,
    CSI_NODE,
    DISRUPTION_BUDGET,
    KUBEVIRT,
    LIMIT_RANGE,
    MIGRATION,
    MIGRATION_POLICY,
    NAMESPACE,
    NETWORK_ATTACHMENT,
    NODE,
    POD,
    QUOTA,
    SNAPSHOT_KINDS,
    STORAGE_CLASS,
    VMI,
    VOLUME,
    VOLUME_ATTACHMENT,
    Kind,
)
from rebalancer.cluster.virtual_machines import KubeVirtSettings
from rebalancer.model.objects import LauncherConfiguration, MigrationConfiguration
from rebalancer.model.snapshot import Snapshot

UNKNOWN_SETTINGS = KubeVirtSettings(MigrationConfiguration(), LauncherConfiguration())
"""KubeVirt's defaults, for readings without its CR."""


def collect(objects: Mapping[Kind, Sequence[Any]], taken_at: datetime) -> Snapshot:
    """The snapshot; kinds without an entry are missing. Its order does not depend on theirs."""
    found: Sequence[KubeVirtSettings] = objects.get(KUBEVIRT, ())
    kubevirt = found[0] if found else UNKNOWN_SETTINGS
    return Snapshot(
        taken_at=taken_at,
        nodes=in_order(objects.get(NODE, ())),
        pods=in_order(objects.get(POD, ())),
        vmis=in_order(objects.get(VMI, ())),
        migrations=in_order(objects.get(MIGRATION, ())),
        claims=in_order(objects.get(CLAIM, ())),
        volumes=in_order(objects.get(VOLUME, ())),
        storage_classes=in_order(objects.get(STORAGE_CLASS, ())),
        csi_drivers=in_order(objects.get(CSI_DRIVER, ())),
        csi_nodes=in_order(objects.get(CSI_NODE, ())),
        volume_attachments=in_order(objects.get(VOLUME_ATTACHMENT, ())),
        namespaces=in_order(objects.get(NAMESPACE, ())),
        quotas=in_order(objects.get(QUOTA, ())),
        limit_ranges=in_order(objects.get(LIMIT_RANGE, ())),
        disruption_budgets=in_order(objects.get(DISRUPTION_BUDGET, ())),
        migration_policies=in_order(objects.get(MIGRATION_POLICY, ())),
        network_attachments=in_order(objects.get(NETWORK_ATTACHMENT, ())),
        migration_configuration=kubevirt.migrations,
        launcher_configuration=kubevirt.launchers,
        missing=tuple(_missing(objects)),
    )


def _missing(objects: Mapping[Kind, Sequence[Any]]) -> Iterator[str]:
    """Definitions of networks are missed only if a VM has one: most clusters know no such kind."""
    for kind in SNAPSHOT_KINDS:
        if kind in objects or (kind is NETWORK_ATTACHMENT and not _have_networks(objects)):
            continue
        yield kind.name


def _have_networks(objects: Mapping[Kind, Sequence[Any]]) -> bool:
    return any(vmi.launcher and vmi.launcher.networks for vmi in objects.get(VMI, ()))


def in_order(objects: Sequence[Any]) -> tuple[Any, ...]:
    """By namespace and name."""
    return tuple(sorted(objects, key=sort_key))


def sort_key(item: Any) -> tuple[str, str]:
    """Namespace and name; both empty for the settings of KubeVirt, of which a cluster has one."""
    return (getattr(item, "namespace", ""), getattr(item, "name", ""))
