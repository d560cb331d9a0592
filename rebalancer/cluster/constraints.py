"""Where a pod may go: selectors, affinity, tolerations and volumes, as the model has them."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import NamedTuple

from msgspec import Raw
from msgspec.json import Decoder

from rebalancer.cluster import wire
from rebalancer.cluster.fields import decode_field
from rebalancer.model.objects import (
    EMPTY,
    LabelSelector,
    NodeSelectorTerm,
    Operator,
    PodAffinityTerm,
    Requirement,
    Toleration,
)

_SELECTOR: Decoder[dict[str, str] | None] = Decoder(dict[str, str] | None)
_AFFINITY: Decoder[wire.Affinity | None] = Decoder(wire.Affinity | None)
_TOLERATIONS: Decoder[list[wire.Toleration] | None] = Decoder(list[wire.Toleration] | None)
_SPREADS: Decoder[list[wire.TopologySpreadConstraint] | None] = Decoder(
    list[wire.TopologySpreadConstraint] | None
)


class Affinity(NamedTuple):
    """A pod's required affinity; terms about other pods still lack its namespace and labels."""

    node_terms: tuple[NodeSelectorTerm, ...] | None
    pod: wire.PodAffinity | None
    pod_anti: wire.PodAffinity | None


class Constraints:
    """Constraints of pods, each decoded once for all pods that have it byte for byte."""

    def __init__(self) -> None:
        self._node_selector = cache(_node_selector)
        self._tolerations = cache(_tolerations)
        self._affinity = cache(_affinity)
        self._hard_spreads = cache(_hard_spreads)

    def node_selector(self, raw: Raw) -> Mapping[str, str]:
        return self._node_selector(bytes(raw))

    def tolerations(self, raw: Raw) -> tuple[Toleration, ...]:
        return self._tolerations(bytes(raw))

    def affinity(self, raw: Raw) -> Affinity:
        return self._affinity(bytes(raw))

    def unmodelled(self, spec: wire.PodSpec) -> tuple[str, ...]:
        """What the pod asks of the scheduler that no filter decides, in words for people."""
        return (
            *self._hard_spreads(bytes(spec.topology_spread_constraints)),
            *_host_ports(spec),
            *_foreign_volumes(spec.volumes or ()),
            *(["resource claims"] if spec.resource_claims else ()),
            *(["a scheduling group"] if spec.scheduling_group else ()),
        )


def node_selector_terms(selector: wire.NodeSelector | None) -> tuple[NodeSelectorTerm, ...] | None:
    """Terms of which one must hold; None where nothing is required."""
    if selector is None:
        return None
    return tuple(
        NodeSelectorTerm(
            expressions=_requirements(term.match_expressions),
            fields=_requirements(term.match_fields),
        )
        for term in selector.node_selector_terms or ()
    )


def pod_affinity_terms(
    affinity: wire.PodAffinity | None, namespace: str, labels: Mapping[str, str]
) -> tuple[PodAffinityTerm, ...]:
    """Required terms of a pod with that namespace and these labels.

    A term that names no namespaces in any way means the pod's own. The API server has merged
    `matchLabelKeys` into the selector already, where it knows them; older ones and files have not.
    Source: getNamespacesFromPodAffinityTerm in k8s.io/kube-scheduler v0.36.3 framework/types.go;
    applyMatchLabelKeysAndMismatchLabelKeys in kubernetes v1.36.3 pkg/registry/core/pod/strategy.go.
    """
    if affinity is None or not affinity.required:
        return ()
    return tuple(_pod_affinity_term(term, namespace, labels) for term in affinity.required)


def _pod_affinity_term(
    term: wire.PodAffinityTerm, namespace: str, labels: Mapping[str, str]
) -> PodAffinityTerm:
    selector = label_selector(term.label_selector)
    if selector is not None:
        merged = [
            *selector.requirements,
            *_label_keys(term.match_label_keys, "In", labels),
            *_label_keys(term.mismatch_label_keys, "NotIn", labels),
        ]
        selector = LabelSelector(tuple(dict.fromkeys(merged)))
    names_none = not term.namespaces and term.namespace_selector is None
    return PodAffinityTerm(
        topology_key=term.topology_key,
        selector=selector,
        namespaces=(namespace,) if names_none else tuple(term.namespaces or ()),
        namespace_selector=label_selector(term.namespace_selector),
    )


def _label_keys(
    keys: Iterable[str] | None, operator: Operator, labels: Mapping[str, str]
) -> Iterator[Requirement]:
    return (Requirement(key, operator, (labels[key],)) for key in keys or () if key in labels)


def label_selector(selector: wire.LabelSelector | None) -> LabelSelector | None:
    if selector is None:
        return None
    labels = (selector.match_labels or {}).items()
    return LabelSelector(
        (
            *(Requirement(key, "In", (value,)) for key, value in labels),
            *_requirements(selector.match_expressions),
        )
    )


def _requirements(requirements: Iterable[wire.Requirement] | None) -> tuple[Requirement, ...]:
    return tuple(Requirement(r.key, r.operator, tuple(r.values or ())) for r in requirements or ())


def _node_selector(data: bytes) -> Mapping[str, str]:
    return decode_field(data, _SELECTOR, "spec.nodeSelector") or EMPTY


def _affinity(data: bytes) -> Affinity:
    affinity = decode_field(data, _AFFINITY, "spec.affinity") or wire.Affinity()
    node_affinity = affinity.node_affinity or wire.NodeAffinity()
    return Affinity(
        node_terms=node_selector_terms(node_affinity.required),
        pod=affinity.pod_affinity,
        pod_anti=affinity.pod_anti_affinity,
    )


def _tolerations(data: bytes) -> tuple[Toleration, ...]:
    tolerations = decode_field(data, _TOLERATIONS, "spec.tolerations") or ()
    return tuple(
        Toleration(t.key or "", t.operator or "Equal", t.value or "", t.effect or "")
        for t in tolerations
    )


def _hard_spreads(data: bytes) -> tuple[str, ...]:
    constraints = decode_field(data, _SPREADS, "spec.topologySpreadConstraints") or ()
    return tuple(
        f"a topology spread constraint over {constraint.topology_key}"
        for constraint in constraints
        if constraint.when_unsatisfiable != "ScheduleAnyway"
    )


def _host_ports(spec: wire.PodSpec) -> Iterator[str]:
    for container in (*(spec.containers or ()), *(spec.init_containers or ())):
        for port in container.ports or ():
            if port.host_port:
                yield f"host port {port.host_port}"


def _foreign_volumes(volumes: Iterable[wire.Volume]) -> Iterator[str]:
    for volume in volumes:
        if volume.ephemeral:
            yield f"generic ephemeral volume {volume.name}"
        elif volume.csi:
            yield f"inline CSI volume {volume.name}"
        elif not _is_known(volume):
            yield f"volume {volume.name}, which is of a kind that is not known here"


def _is_known(volume: wire.Volume) -> bool:
    """Whether it is of a kind that no filter of the scheduler looks at, or a claim."""
    return bool(
        volume.config_map
        or volume.empty_dir
        or volume.persistent_volume_claim
        or volume.projected
        or volume.secret
        or volume.downward_api
        or volume.host_path
        or volume.image
    )
