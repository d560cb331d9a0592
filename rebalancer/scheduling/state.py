"""A snapshot laid out for filters: nodes as arrays, room and labels looked up once."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from rebalancer.model.change import Change
from rebalancer.model.keys import HOSTNAME
from rebalancer.model.objects import Amounts, HostPort, Node, ObjectKey, Pod, Taint
from rebalancer.model.snapshot import Snapshot
from rebalancer.scheduling.attached_volumes import AttachedVolumes
from rebalancer.scheduling.drain_sign import drain_sign
from rebalancer.scheduling.placed_pods import Column, PlacedPods, PlacedTerms

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]


class ClusterState:
    """One snapshot's nodes, in snapshot order on every axis `node`, and what is placed on them."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.nodes: tuple[Node, ...] = snapshot.nodes
        self._label_masks: dict[tuple[str, str], BoolArray] = {}
        self._selector_masks: dict[int, tuple[Mapping[str, str], BoolArray]] = {}
        self._label_values: dict[str, tuple[str | None, ...]] = {}
        self._domains: dict[str, IntArray] = {}
        self._requested: dict[str, IntArray] = {}
        self._allocatable: dict[str, IntArray] = {}

    @cached_property
    def index(self) -> Mapping[str, int]:
        """Node name to its place on the axis."""
        return {node.name: i for i, node in enumerate(self.nodes)}

    def with_pods_of(self, snapshot: Snapshot) -> "ClusterState":
        """That of another snapshot with the same nodes; what depends on them alone stays."""
        other = ClusterState(snapshot)
        known = vars(self)
        vars(other).update({name: known[name] for name in _OF_NODES if name in known})
        return other

    def after(self, change: Change, snapshot: Snapshot) -> "ClusterState | None":
        """That of the snapshot that the change makes of this one's; what is known is carried over.

        None where a pod is bound elsewhere than it was expected: nothing is taken back here.
        """
        after = self.with_pods_of(snapshot)
        pods, changed = snapshot.pods, snapshot.changed_by(change)
        before = np.append(self.node_of_pod, np.full(len(change.pods), -1))
        node_of_pod = before.copy()
        node_of_pod[changed] = [self._node_of(pods[position]) for position in changed]
        if (node_of_pod != before)[before >= 0].any():
            return None
        arrived = [i for i in changed if before[i] < 0 <= node_of_pod[i]]
        placements = [(pods[i], int(node_of_pod[i])) for i in arrived]
        known = vars(self)
        after.node_of_pod = node_of_pod
        for resource, column in self._requested.items():
            after._requested[resource] = column.copy()
            for pod, node in placements:
                after._requested[resource][node] += pod.requests.get(resource, 0)
        if "placed" in known:
            after.placed = self.placed.after(pods, node_of_pod, changed)
        if "placed_terms" in known:
            after.placed_terms = self.placed_terms.after(pods, arrived)
        if "placed_host_ports" in known:
            after.placed_host_ports = (*self.placed_host_ports, *_host_ports(placements))
        if "claims_in_use" in known:
            after.claims_in_use = {**self.claims_in_use, **_claims(placements)}
        if "volumes" in known:
            after.volumes = self.volumes.after(placements, partial(_placements, pods, node_of_pod))
        return after

    def label_values(self, key: str) -> tuple[str | None, ...]:
        """Each node's value of a label, None where it has none."""
        values = self._label_values.get(key)
        if values is None:
            values = tuple([node.labels.get(key) for node in self.nodes])
            self._label_values[key] = values
        return values

    def has_label(self, key: str, value: str) -> BoolArray:
        """Which nodes have that label with that value."""
        mask = self._label_masks.get((key, value))
        if mask is None:
            mask = np.array([v == value for v in self.label_values(key)], np.bool_)
            self._label_masks[key, value] = mask
        return mask

    def has_labels(self, selector: Mapping[str, str]) -> BoolArray:
        """Which nodes have all of these labels; shared, so not to be changed.

        Equal selectors are mostly one object, and a host model puts some eighty labels into each.
        """
        # The selector is kept beside its mask, so that no other object can get its id.
        known = self._selector_masks.get(id(selector))
        if known is None:
            mask = np.ones(len(self.nodes), np.bool_)
            for key, value in selector.items():
                mask &= self.has_label(key, value)
            known = self._selector_masks[id(selector)] = selector, mask
        return known[1]

    @cached_property
    def is_ready(self) -> BoolArray:
        """Axis: node."""
        return self.mask(node.is_ready for node in self.nodes)

    @cached_property
    def is_unschedulable(self) -> BoolArray:
        """Which nodes are cordoned. Axis: node."""
        return self.mask(node.is_unschedulable for node in self.nodes)

    @cached_property
    def is_draining(self) -> BoolArray:
        """Which nodes are to be emptied, so that nobody may be moved there. Axis: node."""
        configuration = self.snapshot.migration_configuration
        return self.mask(drain_sign(node, configuration) != "" for node in self.nodes)

    def mask(self, flags: Iterator[bool]) -> BoolArray:
        """One flag per node as an array."""
        return np.fromiter(flags, np.bool_, len(self.nodes))

    @cached_property
    def nodes_by_taints(self) -> Mapping[tuple[Taint, ...], IntArray]:
        """Indexes of the nodes that have exactly these taints; most share one of few sets."""
        groups: dict[tuple[Taint, ...], list[int]] = {}
        for i, node in enumerate(self.nodes):
            groups.setdefault(node.taints, []).append(i)
        return {taints: np.array(indexes, np.int64) for taints, indexes in groups.items()}

    @cached_property
    def node_of_pod(self) -> IntArray:
        """For each pod of the snapshot the index of the node where it holds room, or -1.

        Besides bound pods, terminating ones included, those hold room that are about to be bound to
        a known node: pods that the scheduler has nominated, and target pods of migrations that are
        pinned by host name. A pod bound to a node that does not exist holds nothing.
        """
        return np.array([self._node_of(pod) for pod in self.snapshot.pods], np.int64)

    def _node_of(self, pod: Pod) -> int:
        if pod.is_finished:
            return -1
        if pod.node_name:
            return self.index.get(pod.node_name, -1)
        if pod.nominated_node_name:
            return self.index.get(pod.nominated_node_name, -1)
        if pod.migration_uid:
            return self._index_by_hostname.get(pod.node_selector.get(HOSTNAME, ""), -1)
        return -1

    @cached_property
    def _index_by_hostname(self) -> Mapping[str, int]:
        values = enumerate(self.label_values(HOSTNAME))
        return {value: i for i, value in values if value is not None}

    @cached_property
    def placements(self) -> tuple[tuple[Pod, int], ...]:
        """Every pod that holds room on a node, and the node's index."""
        return _placements(self.snapshot.pods, self.node_of_pod)

    def allocatable(self, resource: str) -> IntArray:
        """Axis: node; a node that does not offer the resource has 0 of it."""
        column = self._allocatable.get(resource)
        if column is None:
            amounts = (node.allocatable.get(resource, 0) for node in self.nodes)
            column = np.fromiter(amounts, np.int64, len(self.nodes))
            self._allocatable[resource] = column
        return column

    def requested(self, resource: str) -> IntArray:
        """Sum of the requests of all pods that hold room there. Axis: node."""
        column = self._requested.get(resource)
        if column is None:
            shapes, shape_of_pod = self._requests_of_pods
            amounts = np.array([shape.get(resource, 0) for shape in shapes], np.int64)
            is_placed = self.node_of_pod >= 0
            column = np.zeros(len(self.nodes), np.int64)
            np.add.at(column, self.node_of_pod[is_placed], amounts[shape_of_pod[is_placed]])
            self._requested[resource] = column
        return column

    def headroom(self, resource: str) -> IntArray:
        """Allocatable minus requested; negative on an over-committed node. Axis: node."""
        return self.allocatable(resource) - self.requested(resource)

    @cached_property
    def _requests_of_pods(self) -> tuple[Sequence[Amounts], IntArray]:
        """Distinct requests, and for each pod of the snapshot the index of its own.

        Equal requests are one object where the reader interned them, so identity is enough to
        group 100,000 pods into a handful of shapes.
        """
        pods = self.snapshot.pods
        identities = np.array([id(pod.requests) for pod in pods], np.int64)
        _, first, shape_of_pod = np.unique(identities, return_index=True, return_inverse=True)
        return [pods[position].requests for position in first.tolist()], shape_of_pod

    @cached_property
    def placed(self) -> PlacedPods:
        """The pods that hold room as columns."""
        return PlacedPods(self.snapshot.pods, self.node_of_pod)

    @cached_property
    def placed_terms(self) -> PlacedTerms:
        """Required anti-affinity of the pods that are there; it bars pods to come."""
        return PlacedTerms(self.snapshot.pods, self.node_of_pod)

    @cached_property
    def placed_host_ports(self) -> tuple[tuple[HostPort, Pod, int], ...]:
        """Ports that are taken, by which pod, and the index of its node."""
        return _host_ports(self.placements)

    @cached_property
    def claims_in_use(self) -> Mapping[ObjectKey, Pod]:
        """Each claim that a placed pod uses, and one such pod."""
        return _claims(self.placements)

    @cached_property
    def volumes(self) -> AttachedVolumes:
        """CSI volumes, and where they are attached."""
        # Not this object's own: it would refer to itself, and outlive its use.
        placements = partial(_placements, self.snapshot.pods, self.node_of_pod)
        return AttachedVolumes(self.snapshot, self.index, placements)

    def domains(self, topology_key: str) -> IntArray:
        """Each node's topology domain by number, -1 where it has none. Axis: node."""
        codes = self._domains.get(topology_key)
        if codes is None:
            codes = self._domains[topology_key] = Column(self.label_values(topology_key)).codes
        return codes

    def sharing_domain(self, topology_key: str, nodes: IntArray) -> BoolArray:
        """Which nodes are in a domain with one of those, given by index. Axis: node."""
        domains = self.domains(topology_key)
        is_meant = np.zeros(len(self.nodes) + 1, np.bool_)
        is_meant[domains[nodes]] = True
        is_meant[-1] = False
        return is_meant[domains]


_OF_NODES = (
    "index",
    "_label_masks",
    "_selector_masks",
    "_label_values",
    "_domains",
    "_allocatable",
    "is_ready",
    "is_unschedulable",
    "is_draining",
    "nodes_by_taints",
    "_index_by_hostname",
)
"""What depends on the nodes alone."""


def _placements(pods: Sequence[Pod], node_of_pod: IntArray) -> tuple[tuple[Pod, int], ...]:
    pairs = zip(pods, node_of_pod.tolist(), strict=True)
    return tuple((pod, node) for pod, node in pairs if node >= 0)


def _host_ports(placements: Sequence[tuple[Pod, int]]) -> tuple[tuple[HostPort, Pod, int], ...]:
    return tuple((port, pod, node) for pod, node in placements for port in pod.host_ports)


def _claims(placements: Sequence[tuple[Pod, int]]) -> Mapping[ObjectKey, Pod]:
    return {
        ObjectKey(pod.namespace, name): pod for pod, _ in placements for name in pod.claim_names
    }
