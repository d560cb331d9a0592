"""Nodes, namespaces, networks and storage on the wire to the model's; each raises FieldError."""

from collections.abc import Iterator, Mapping

from rebalancer.cluster import wire
from rebalancer.cluster.constraints import node_selector_terms
from rebalancer.cluster.fields import amounts, condition, required
from rebalancer.model.keys import DRAIN, TOPOLOGY_LABELS
from rebalancer.model.objects import (
    EMPTY,
    CSIDriver,
    CSINode,
    CsiVolume,
    Namespace,
    NetworkAttachmentDefinition,
    Node,
    NodeSelectorTerm,
    PersistentVolume,
    PersistentVolumeClaim,
    Requirement,
    StorageClass,
    Taint,
    VolumeAttachment,
)

_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
"""Annotation of a claim whose binding is done; one that only names its volume waits for it."""

_SELECTED_NODE = "volume.kubernetes.io/selected-node"
_RESOURCE_NAME = "k8s.v1.cni.cncf.io/resourceName"
_BETA_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
"""Annotation of a claim that takes precedence over the field."""

# Those that have a CSI driver in csi-translation-lib v0.36.3 plugins/.
_LEGACY_SOURCES = (
    "aws_elastic_block_store",
    "azure_disk",
    "azure_file",
    "cinder",
    "gce_persistent_disk",
    "portworx_volume",
    "vsphere_volume",
)


def convert_node(node: wire.Node) -> Node:
    """Allocatable cpu, memory and pods must be there: capacity is no stand-in, and 0 no guess."""
    metadata = node.metadata or wire.Metadata()
    spec = node.spec or wire.NodeSpec()
    status = node.status or wire.NodeStatus()
    allocatable = amounts(required(status.allocatable, "status.allocatable"), "status.allocatable")
    for resource in ("cpu", "memory", "pods"):
        required(allocatable.get(resource), f"status.allocatable.{resource}")
    ready = condition(status.conditions, "Ready")
    return Node(
        name=required(metadata.name, "metadata.name"),
        allocatable=allocatable,
        labels=metadata.labels or EMPTY,
        taints=tuple(Taint(t.key, t.effect, t.value or "") for t in spec.taints or ()),
        is_unschedulable=bool(spec.unschedulable),
        is_ready=ready is not None and ready.status == "True",
        internal_addresses=tuple(
            each.address for each in status.addresses or () if each.type == "InternalIP"
        ),
        uid=metadata.uid or "",
        drain_sign=_drain_sign(metadata),
    )


def _drain_sign(metadata: wire.Metadata) -> str:
    marks = (("label", metadata.labels), ("annotation", metadata.annotations))
    return next(
        (
            f"{kind} {DRAIN}"
            for kind, values in marks
            if (values or EMPTY).get(DRAIN, "false") != "false"
        ),
        "",
    )


def convert_claim(claim: wire.PersistentVolumeClaim) -> PersistentVolumeClaim:
    """Source: isPVCFullyBound and podHasPVCs in kubernetes v1.36.3
    pkg/scheduler/framework/plugins/volumebinding.
    """
    metadata = claim.metadata or wire.Metadata()
    spec = claim.spec or wire.ClaimSpec()
    annotations = metadata.annotations or EMPTY
    return PersistentVolumeClaim(
        namespace=required(metadata.namespace, "metadata.namespace"),
        name=required(metadata.name, "metadata.name"),
        volume_name=spec.volume_name or "",
        is_bound=_BIND_COMPLETED in annotations,
        storage_class=annotations.get(_BETA_STORAGE_CLASS, spec.storage_class_name or ""),
        selected_node=annotations.get(_SELECTED_NODE, ""),
        is_read_write_once_pod="ReadWriteOncePod" in (spec.access_modes or ()),
        is_terminating=metadata.deletion_timestamp is not None,
        is_lost=claim.status is not None and claim.status.phase == "Lost",
    )


def convert_volume(volume: wire.PersistentVolume) -> PersistentVolume:
    metadata = volume.metadata or wire.Metadata()
    spec = volume.spec or wire.VolumeSpec()
    affinity = spec.node_affinity or wire.VolumeNodeAffinity()
    terms = node_selector_terms(affinity.required)
    return PersistentVolume(
        name=required(metadata.name, "metadata.name"),
        node_affinity=None if terms is None else tuple(map(_by_labels_only, terms)),
        zones=tuple(_zones(metadata.labels or EMPTY)),
        csi=CsiVolume(spec.csi.driver, spec.csi.volume_handle) if spec.csi else None,
        legacy_source=next((name for name in _LEGACY_SOURCES if getattr(spec, name)), ""),
    )


def convert_storage_class(storage_class: wire.StorageClass) -> StorageClass:
    metadata = storage_class.metadata or wire.Metadata()
    terms = storage_class.allowed_topologies
    return StorageClass(
        name=required(metadata.name, "metadata.name"),
        provisioner=required(storage_class.provisioner, "provisioner"),
        waits_for_consumer=storage_class.volume_binding_mode == "WaitForFirstConsumer",
        allowed_topologies=tuple(map(_topology, terms)) if terms else None,
    )


def _topology(term: wire.TopologySelectorTerm) -> NodeSelectorTerm:
    expressions = term.match_label_expressions or ()
    return NodeSelectorTerm(tuple(Requirement(e.key, "In", tuple(e.values)) for e in expressions))


def convert_csi_driver(driver: wire.CSIDriver) -> CSIDriver:
    metadata = driver.metadata or wire.Metadata()
    return CSIDriver(
        name=required(metadata.name, "metadata.name"),
        tracks_capacity=bool(driver.spec and driver.spec.storage_capacity),
    )


def convert_csi_node(csi_node: wire.CSINode) -> CSINode:
    metadata = csi_node.metadata or wire.Metadata()
    spec = csi_node.spec or wire.CSINodeSpec()
    return CSINode(
        name=required(metadata.name, "metadata.name"),
        volume_limits={
            driver.name: driver.allocatable.count
            for driver in spec.drivers or ()
            if driver.allocatable and driver.allocatable.count is not None
        },
    )


def convert_attachment(attachment: wire.VolumeAttachment) -> VolumeAttachment:
    metadata = attachment.metadata or wire.Metadata()
    spec = required(attachment.spec, "spec")
    return VolumeAttachment(
        name=required(metadata.name, "metadata.name"),
        driver=spec.attacher,
        node_name=spec.node_name,
        volume_name=(spec.source and spec.source.persistent_volume_name) or "",
    )


def convert_namespace(namespace: wire.Namespace) -> Namespace:
    metadata = namespace.metadata or wire.Metadata()
    return Namespace(required(metadata.name, "metadata.name"), metadata.labels or EMPTY)


def _by_labels_only(term: NodeSelectorTerm) -> NodeSelectorTerm:
    """A term about the node's name becomes one that matches no node.

    Source: CheckNodeAffinity in k8s.io/component-helpers v0.36.3 storage/volume/helpers.go, which
    shows the term a node that has labels only. (One with NotIn it lets pass; not so here, which
    errs to the safe side.)
    """
    return term if not term.fields else NodeSelectorTerm()


def _zones(labels: Mapping[str, str]) -> Iterator[Requirement]:
    """Source: getPVTopologies in kubernetes v1.36.3 plugins/volumezone/volume_zone.go, and
    LabelZonesToSet in k8s.io/cloud-provider volume/helpers/zones.go: a value that has an empty
    part is passed over.
    """
    for key in TOPOLOGY_LABELS:
        values = tuple(part.strip() for part in labels.get(key, "").split("__"))
        if all(values):
            yield Requirement(key, "In", values)


def convert_network_attachment(
    definition: wire.NetworkAttachmentDefinition,
) -> NetworkAttachmentDefinition:
    metadata = definition.metadata or wire.Metadata()
    return NetworkAttachmentDefinition(
        namespace=required(metadata.namespace, "metadata.namespace"),
        name=required(metadata.name, "metadata.name"),
        resource_name=(metadata.annotations or EMPTY).get(_RESOURCE_NAME, ""),
    )
