"""Nodes, namespaces and storage on the wire to those of the model; each raises FieldError."""

from collections.abc import Mapping

from rebalancer.cluster import wire
from rebalancer.cluster.constraints import node_selector_terms
from rebalancer.cluster.fields import amounts, condition, required
from rebalancer.model.objects import (
    EMPTY,
    Namespace,
    Node,
    NodeSelectorTerm,
    PersistentVolume,
    PersistentVolumeClaim,
    Requirement,
    Taint,
)

_TOPOLOGY = {
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""Labels of volumes, and the labels that nodes have for the same."""


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
    )


def convert_claim(claim: wire.PersistentVolumeClaim) -> PersistentVolumeClaim:
    metadata = claim.metadata or wire.Metadata()
    return PersistentVolumeClaim(
        namespace=required(metadata.namespace, "metadata.namespace"),
        name=required(metadata.name, "metadata.name"),
        volume_name=(claim.spec and claim.spec.volume_name) or "",
    )


def convert_volume(volume: wire.PersistentVolume) -> PersistentVolume:
    metadata = volume.metadata or wire.Metadata()
    spec = volume.spec or wire.VolumeSpec()
    affinity = spec.node_affinity or wire.VolumeNodeAffinity()
    return PersistentVolume(
        name=required(metadata.name, "metadata.name"),
        node_affinity=_within_zones(
            node_selector_terms(affinity.required), metadata.labels or EMPTY
        ),
    )


def convert_namespace(namespace: wire.Namespace) -> Namespace:
    metadata = namespace.metadata or wire.Metadata()
    return Namespace(required(metadata.name, "metadata.name"), metadata.labels or EMPTY)


def _within_zones(
    terms: tuple[NodeSelectorTerm, ...] | None, labels: Mapping[str, str]
) -> tuple[NodeSelectorTerm, ...] | None:
    """The terms with the volume's zone labels as expressions of each; an empty term, which
    matches nothing, is left out.

    Source: pkg/scheduler/framework/plugins/volumezone/volume_zone.go in kubernetes v1.36.3. It
    lets nodes without any topology label pass; here they do not, which errs to the safe side.
    """
    zones = tuple(
        Requirement(_TOPOLOGY[key], "In", tuple(value.split("__")))
        for key, value in labels.items()
        if key in _TOPOLOGY
    )
    if not zones:
        return terms
    if terms is None:
        return (NodeSelectorTerm(zones),)
    return tuple(
        NodeSelectorTerm((*term.expressions, *zones), term.fields)
        for term in terms
        if term.expressions or term.fields
    )
