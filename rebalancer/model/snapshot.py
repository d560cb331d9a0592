"""The cluster at one instant, with the indexes that everything else asks."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from operator import attrgetter
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from rebalancer.model.change import Change
from rebalancer.model.measured_load import MeasuredLoad
from rebalancer.model.objects import (
    CSIDriver,
    CSINode,
    LauncherConfiguration,
    LimitRange,
    Migration,
    MigrationConfiguration,
    MigrationPolicy,
    Namespace,
    NetworkAttachmentDefinition,
    Node,
    ObjectKey,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    ResourceQuota,
    StorageClass,
    VirtualMachineInstance,
    VolumeAttachment,
)


class Snapshot(Struct, frozen=True, dict=True):
    """One consistent reading of the cluster; never changed, only copied with changes."""

    taken_at: datetime
    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()
    vmis: tuple[VirtualMachineInstance, ...] = ()
    migrations: tuple[Migration, ...] = ()
    claims: tuple[PersistentVolumeClaim, ...] = ()
    volumes: tuple[PersistentVolume, ...] = ()
    storage_classes: tuple[StorageClass, ...] = ()
    csi_drivers: tuple[CSIDriver, ...] = ()
    csi_nodes: tuple[CSINode, ...] = ()
    volume_attachments: tuple[VolumeAttachment, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    quotas: tuple[ResourceQuota, ...] = ()
    limit_ranges: tuple[LimitRange, ...] = ()
    disruption_budgets: tuple[PodDisruptionBudget, ...] = ()
    migration_policies: tuple[MigrationPolicy, ...] = ()
    network_attachments: tuple[NetworkAttachmentDefinition, ...] = ()
    migration_configuration: MigrationConfiguration = MigrationConfiguration()
    launcher_configuration: LauncherConfiguration = LauncherConfiguration()
    measured_load: MeasuredLoad | None = None
    """None where nothing is measured; where measuring failed it says why."""
    missing: tuple[str, ...] = ()
    """Kinds that the source does not hold, so that nothing may be concluded from their absence."""

    @cached_property
    def node_by_name(self) -> Mapping[str, Node]:
        return {node.name: node for node in self.nodes}

    @cached_property
    def vmi_by_key(self) -> Mapping[ObjectKey, VirtualMachineInstance]:
        return {vmi.key: vmi for vmi in self.vmis}

    @cached_property
    def vmi_by_uid(self) -> Mapping[str, VirtualMachineInstance]:
        return {vmi.uid: vmi for vmi in self.vmis}

    @cached_property
    def pod_by_key(self) -> Mapping[ObjectKey, Pod]:
        return {pod.key: pod for pod in self.pods}

    @cached_property
    def position_of_pod(self) -> Mapping[str, int]:
        """Pod uid to its place in `pods`."""
        return {pod.uid: position for position, pod in enumerate(self.pods)}

    @cached_property
    def claim_by_key(self) -> Mapping[ObjectKey, PersistentVolumeClaim]:
        return {ObjectKey(claim.namespace, claim.name): claim for claim in self.claims}

    @cached_property
    def volume_by_name(self) -> Mapping[str, PersistentVolume]:
        return {volume.name: volume for volume in self.volumes}

    @cached_property
    def storage_class_by_name(self) -> Mapping[str, StorageClass]:
        return {storage_class.name: storage_class for storage_class in self.storage_classes}

    @cached_property
    def csi_driver_by_name(self) -> Mapping[str, CSIDriver]:
        return {driver.name: driver for driver in self.csi_drivers}

    @cached_property
    def network_attachment_by_key(self) -> Mapping[ObjectKey, NetworkAttachmentDefinition]:
        return {ObjectKey(each.namespace, each.name): each for each in self.network_attachments}

    @cached_property
    def labels_by_namespace(self) -> Mapping[str, Mapping[str, str]]:
        return {namespace.name: namespace.labels for namespace in self.namespaces}

    @cached_property
    def quotas_by_namespace(self) -> Mapping[str, tuple[ResourceQuota, ...]]:
        return _grouped((quota.namespace, quota) for quota in self.quotas)

    @cached_property
    def limit_ranges_by_namespace(self) -> Mapping[str, tuple[LimitRange, ...]]:
        return _grouped((limits.namespace, limits) for limits in self.limit_ranges)

    @cached_property
    def launchers_by_vmi(self) -> Mapping[str, tuple[Pod, ...]]:
        """VMI uid to its launcher pods that have not finished."""
        return _by("vmi_uid", self.pods)

    @cached_property
    def attachments_by_launcher(self) -> Mapping[str, tuple[Pod, ...]]:
        """Launcher pod uid to the pods that bring hot-plugged volumes to it."""
        return _by("attached_to", self.pods)

    @cached_property
    def pods_by_node(self) -> Mapping[str, tuple[Pod, ...]]:
        """Node name to the pods that hold room there: bound and not finished."""
        return _by("node_name", self.pods)

    @cached_property
    def terminating_pods(self) -> tuple[Pod, ...]:
        """Pods that are being deleted and have not finished."""
        return tuple(pod for pod in self.pods if pod.is_terminating and not pod.is_finished)

    @cached_property
    def migrations_by_vmi(self) -> Mapping[ObjectKey, tuple[Migration, ...]]:
        """All migrations that are left of a VMI, oldest first."""
        return _by_vmi(self.migrations)

    @cached_property
    def migrations_in_flight(self) -> tuple[Migration, ...]:
        return tuple(migration for migration in self.migrations if not migration.is_finished)

    def pod_of_vmi(self, vmi: VirtualMachineInstance) -> Pod | None:
        """The VMI's one live launcher pod, None where there is none or more than one."""
        launchers = self.launchers_by_vmi.get(vmi.uid, ())
        return launchers[0] if len(launchers) == 1 else None

    def without_pod(self, pod: Pod) -> "Snapshot":
        """The snapshot as that pod comes upon it, even if it holds room already."""
        return replace(self, pods=tuple(other for other in self.pods if other.uid != pod.uid))

    def with_pod_on(self, pod: Pod, node_name: str) -> "Snapshot":
        """The snapshot as if that pod were bound to that node (and nowhere else)."""
        bound = pod.bound_to(node_name)
        return replace(self, pods=tuple(bound if p.uid == pod.uid else p for p in self.pods))

    def with_change(self, change: Change) -> "Snapshot":
        """The snapshot after the change; indexes that are known are carried over."""
        pods = [*self.pods, *change.pods]
        for pod in change.bound:
            pods[self.position_of_pod[pod.uid]] = pod
        migrations = (*self.migrations, *change.migrations)
        after = replace(self, pods=tuple(pods), migrations=migrations)
        vars(after).update(self._indexes_after(change))
        return after

    def changed_by(self, change: Change) -> list[int]:
        """Positions of the pods that the change, which has made this snapshot, has put there."""
        bound = [self.position_of_pod[pod.uid] for pod in change.bound]
        return [*bound, *range(len(self.pods) - len(change.pods), len(self.pods))]

    def _indexes_after(self, change: Change) -> Mapping[str, object]:
        """Those that are known of this snapshot and cost much to make anew."""
        known = vars(self)
        indexes = {name: known[name] for name in _STAYING if name in known}
        more = enumerate(change.pods, len(self.pods))
        position = {**self.position_of_pod, **{pod.uid: i for i, pod in more}}
        indexes["position_of_pod"] = position
        bound = {pod.uid for pod in change.bound}
        for name, field in _PODS_BY.items():
            if name in known:
                groups = indexes[name] = dict(known[name])
                for key, pods in _by(field, (*change.bound, *change.pods)).items():
                    others = (pod for pod in groups.get(key, ()) if pod.uid not in bound)
                    in_order = sorted((*others, *pods), key=lambda pod: position[pod.uid])
                    groups[key] = tuple(in_order)
        if "migrations_by_vmi" in known:
            of_vmis = indexes["migrations_by_vmi"] = dict(self.migrations_by_vmi)
            for vmi, migrations in _by_vmi(change.migrations).items():
                [of_vmis[vmi]] = _by_vmi((*of_vmis.get(vmi, ()), *migrations)).values()
        return indexes


_STAYING = (
    "node_by_name",
    "vmi_by_key",
    "vmi_by_uid",
    "claim_by_key",
    "volume_by_name",
    "storage_class_by_name",
    "csi_driver_by_name",
    "network_attachment_by_key",
    "labels_by_namespace",
    "quotas_by_namespace",
    "limit_ranges_by_namespace",
    "terminating_pods",
)
"""Indexes of what no change changes."""

_PODS_BY = {
    "launchers_by_vmi": "vmi_uid",
    "attachments_by_launcher": "attached_to",
    "pods_by_node": "node_name",
}
"""Index to the pods' field that it is by."""

K = TypeVar("K")
V = TypeVar("V")


def _grouped(pairs: Iterable[tuple[K, V]]) -> Mapping[K, tuple[V, ...]]:
    """Values by key, in their order. Most keys have one value, so only the others get a list."""
    groups: dict[K, tuple[V, ...]] = {}
    more: dict[K, list[V]] = {}
    for key, value in pairs:
        alone = (value,)
        if groups.setdefault(key, alone) is not alone:
            more.setdefault(key, []).append(value)
    for key, values in more.items():
        groups[key] = (*groups[key], *values)
    return groups


def _by(field: str, pods: Sequence[Pod]) -> Mapping[str, tuple[Pod, ...]]:
    """The pods that have not finished by one of their fields, where it is set."""
    keys = map(attrgetter(field), pods)
    pairs = zip(keys, pods, strict=True)
    return _grouped((key, pod) for key, pod in pairs if key and not pod.is_finished)


def _by_vmi(migrations: Iterable[Migration]) -> Mapping[ObjectKey, tuple[Migration, ...]]:
    """Oldest first."""
    ordered = sorted(migrations, key=lambda m: (str(m.created_at or ""), m.name))
    return _grouped((migration.vmi_key, migration) for migration in ordered)
