"""Where a pod may go: selectors, affinity, tolerations and volumes, as the model has them."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import chain
from typing import NamedTuple

from msgspec import Raw
from msgspec.json import Decoder

from rebalancer.cluster import wire
from rebalancer.cluster.fields import decode_field
from rebalancer.model.objects import (
    EMPTY,
    HostPort,
    LabelSelector,
    NodeSelectorTerm,
    Operator,
    PodAffinityTerm,
    Requirement,
    Toleration,
    TopologySpreadConstraint,
)

_SELECTOR: Decoder[dict[str, str] | None] = Decoder(dict[str, str] | None)
_AFFINITY: Decoder[wire.Affinity | None] = Decoder(wire.Affinity | None)
_TOLERATIONS: Decoder[list[wire.Toleration] | None] = Decoder(list[wire.Toleration] | None)
_SPREADS: Decoder[list[wire.TopologySpreadConstraint] | None] = Decoder(
    list[wire.TopologySpreadConstraint] | None
)


_LabelValues = tuple[tuple[str, str], ...]


class Affinity(NamedTuple):
    """A pod's required affinity and anti-affinity."""

    node_terms: tuple[NodeSelectorTerm, ...] | None = None
    pod: tuple[PodAffinityTerm, ...] = ()
    pod_anti: tuple[PodAffinityTerm, ...] = ()


_NO_AFFINITY = Affinity()


class Constraints:
    """Constraints of pods, each decoded once for all pods that have it byte for byte."""

    def __init__(self) -> None:
        self._node_selector = cache(_node_selector)
        self._tolerations = cache(_tolerations)
        self._read_affinity = cache(_read_affinity)
        self._affinity: dict[tuple[bytes, str, _LabelValues], Affinity] = {}
        self._spread_keys = cache(_spread_keys)
        self._topology_spread = cache(_topology_spread)

    def node_selector(self, raw: Raw) -> Mapping[str, str]:
        return self._node_selector(bytes(raw))

    def tolerations(self, raw: Raw) -> tuple[Toleration, ...]:
        return self._tolerations(bytes(raw))

    def affinity(self, raw: Raw, namespace: str, labels: Mapping[str, str]) -> Affinity:
        """Of a pod with that namespace and these labels."""
        if raw is wire.NULL:
            return _NO_AFFINITY
        data = bytes(raw)
        affinity, named_keys = self._read_affinity(data)
        key = data, namespace, _values(named_keys, labels)
        found = self._affinity.get(key)
        if found is None:
            found = self._affinity[key] = _affinity(affinity, namespace, dict(key[2]))
        return found

    def topology_spread(
        self, raw: Raw, labels: Mapping[str, str]
    ) -> tuple[TopologySpreadConstraint, ...]:
        """The constraints that bar nodes, for a pod with these labels."""
        if raw is wire.NULL:
            return ()
        data = bytes(raw)
        return self._topology_spread(data, _values(self._spread_keys(data), labels))

    def unmodelled(self, spec: wire.PodSpec) -> tuple[str, ...]:
        """What the pod asks of the scheduler that no filter decides, in words for people."""
        return (
            *_node_features(spec),
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


def host_ports(spec: wire.PodSpec) -> tuple[HostPort, ...]:
    """Of containers and sidecars. Source: GetHostPorts in kubernetes v1.36.3
    pkg/scheduler/util/utils.go.
    """
    containers = list(spec.containers or ())
    if spec.init_containers:
        sidecars = [each for each in spec.init_containers if each.restart_policy == "Always"]
        containers = [*sidecars, *containers]
    ports = [port for each in containers if each.ports for port in each.ports if port.host_port]
    return tuple(
        HostPort(port.host_port or 0, port.protocol or "TCP", port.host_ip or "0.0.0.0")
        for port in ports
    )


def _pod_affinity_terms(
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
    selector = _merged(
        label_selector(term.label_selector),
        _label_keys(term.match_label_keys, "In", labels),
        _label_keys(term.mismatch_label_keys, "NotIn", labels),
    )
    names_none = not term.namespaces and term.namespace_selector is None
    return PodAffinityTerm(
        topology_key=term.topology_key,
        selector=selector,
        namespaces=(namespace,) if names_none else tuple(term.namespaces or ()),
        namespace_selector=label_selector(term.namespace_selector),
    )


def _merged(selector: LabelSelector | None, *more: Iterable[Requirement]) -> LabelSelector | None:
    """The selector with more requirements; one that selects nothing stays as it is."""
    if selector is None:
        return None
    return LabelSelector(tuple(dict.fromkeys(chain(selector.requirements, *more))))


def _values(keys: Iterable[str], labels: Mapping[str, str]) -> _LabelValues:
    return tuple((key, labels[key]) for key in keys if key in labels)


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


def _read_affinity(data: bytes) -> tuple[wire.Affinity, tuple[str, ...]]:
    """The affinity, and the labels of the pod itself that its terms refer to."""
    affinity = decode_field(data, _AFFINITY, "spec.affinity") or wire.Affinity()
    kinds = (affinity.pod_affinity, affinity.pod_anti_affinity)
    terms = [term for kind in kinds if kind for term in kind.required or ()]
    keys = ((*(term.match_label_keys or ()), *(term.mismatch_label_keys or ())) for term in terms)
    return affinity, tuple(sorted(set(chain.from_iterable(keys))))


def _affinity(affinity: wire.Affinity, namespace: str, labels: Mapping[str, str]) -> Affinity:
    node_affinity = affinity.node_affinity or wire.NodeAffinity()
    return Affinity(
        node_terms=node_selector_terms(node_affinity.required),
        pod=_pod_affinity_terms(affinity.pod_affinity, namespace, labels),
        pod_anti=_pod_affinity_terms(affinity.pod_anti_affinity, namespace, labels),
    )


def _tolerations(data: bytes) -> tuple[Toleration, ...]:
    tolerations = decode_field(data, _TOLERATIONS, "spec.tolerations") or ()
    return tuple(
        Toleration(t.key or "", t.operator or "Equal", t.value or "", t.effect or "")
        for t in tolerations
    )


def _hard_spreads(data: bytes) -> list[wire.TopologySpreadConstraint]:
    constraints = decode_field(data, _SPREADS, "spec.topologySpreadConstraints") or ()
    return [each for each in constraints if each.when_unsatisfiable != "ScheduleAnyway"]


def _spread_keys(data: bytes) -> tuple[str, ...]:
    keys = (each.match_label_keys or () for each in _hard_spreads(data))
    return tuple(sorted(set(chain.from_iterable(keys))))


def _topology_spread(data: bytes, named: _LabelValues) -> tuple[TopologySpreadConstraint, ...]:
    """Source, also of the defaults: filterTopologySpreadConstraints in kubernetes v1.36.3
    pkg/scheduler/framework/plugins/podtopologyspread/common.go.
    """
    return tuple(
        TopologySpreadConstraint(
            topology_key=each.topology_key,
            max_skew=each.max_skew,
            selector=_merged(
                label_selector(each.label_selector),
                _label_keys(each.match_label_keys, "In", dict(named)),
            ),
            min_domains=1 if each.min_domains is None else each.min_domains,
            honors_node_affinity=each.node_affinity_policy != "Ignore",
            honors_node_taints=each.node_taints_policy == "Honor",
        )
        for each in _hard_spreads(data)
    )


def _node_features(spec: wire.PodSpec) -> Iterator[str]:
    """What only nodes can do that declare it; which do, no snapshot tells.

    Source: k8s.io/component-helpers v0.36.3 nodedeclaredfeatures/features.
    """
    if spec.host_network and spec.host_users is False:
        yield "a user namespace on the host's network"
    for container in (*(spec.containers or ()), *(spec.init_containers or ())):
        for rule in container.restart_policy_rules or ():
            if rule.action == "RestartAllContainers":
                yield "a restart rule for all its containers"


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
