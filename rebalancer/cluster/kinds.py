"""The kinds of object that are dealt with, and where the API server has them."""

from typing import NamedTuple


class Kind(NamedTuple):
    name: str
    group: str
    plural: str
    version: str = "v1"
    is_optional: bool = False
    """Whether a cluster may not know the kind, and then has no object of it."""

    @property
    def resource(self) -> str:
        """As RBAC and kubectl call it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "") -> str:
        """Of all objects, of those in a namespace, or of one object."""
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if namespace:
            parts += ["namespaces", namespace]
        return "/" + "/".join([*parts, self.plural, *filter(None, [name])])


NODE = Kind("Node", "", "nodes")
POD = Kind("Pod", "", "pods")
CLAIM = Kind("PersistentVolumeClaim", "", "persistentvolumeclaims")
VOLUME = Kind("PersistentVolume", "", "persistentvolumes")
STORAGE_CLASS = Kind("StorageClass", "storage.k8s.io", "storageclasses")
CSI_DRIVER = Kind("CSIDriver", "storage.k8s.io", "csidrivers")
CSI_NODE = Kind("CSINode", "storage.k8s.io", "csinodes")
VOLUME_ATTACHMENT = Kind("VolumeAttachment", "storage.k8s.io", "volumeattachments")
NAMESPACE = Kind("Namespace", "", "namespaces")
QUOTA = Kind("ResourceQuota", "", "resourcequotas")
LIMIT_RANGE = Kind("LimitRange", "", "limitranges")
DISRUPTION_BUDGET = Kind("PodDisruptionBudget", "policy", "poddisruptionbudgets")
KUBEVIRT = Kind("KubeVirt", "kubevirt.io", "kubevirts")
MIGRATION_POLICY = Kind(
    "MigrationPolicy", "migrations.kubevirt.io", "migrationpolicies", "v1alpha1", is_optional=True
)
NETWORK_ATTACHMENT = Kind(
    "NetworkAttachmentDefinition",
    "k8s.cni.cncf.io",
    "network-attachment-definitions",
    is_optional=True,
)
VMI = Kind("VirtualMachineInstance", "kubevirt.io", "virtualmachineinstances")
MIGRATION = Kind(
    "VirtualMachineInstanceMigration", "kubevirt.io", "virtualmachineinstancemigrations"
)
EVENT = Kind("Event", "", "events")
LEASE = Kind("Lease", "coordination.k8s.io", "leases")

SNAPSHOT_KINDS = (
    KUBEVIRT,
    MIGRATION_POLICY,
    NETWORK_ATTACHMENT,
    NAMESPACE,
    LIMIT_RANGE,
    DISRUPTION_BUDGET,
    VOLUME,
    CLAIM,
    STORAGE_CLASS,
    CSI_DRIVER,
    CSI_NODE,
    VOLUME_ATTACHMENT,
    NODE,
    QUOTA,
    MIGRATION,
    VMI,
    POD,
)
"""What a snapshot is made of, in the order in which it is read. Pods come last: a migration that
starts meanwhile then shows as a second launcher pod, which bars its VM, not as free room."""
