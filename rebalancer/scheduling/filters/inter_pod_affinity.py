"""InterPodAffinity: required terms both ways, the pods that are there being asked as well."""

from collections.abc import Sequence

import numpy as np

from rebalancer.model.objects import Pod, PodAffinityTerm
from rebalancer.scheduling.filters.base import Filter
from rebalancer.scheduling.matching import selects
from rebalancer.scheduling.state import BoolArray, ClusterState


def _allowed(pod: Pod, state: ClusterState) -> BoolArray:
    allowed = np.ones(len(state.nodes), np.bool_)
    for _, node, term in state.placed_anti_affinity:
        if term_matches(term, pod, state, when_unknown=True):
            allowed &= ~_same_domain(term.topology_key, {node}, state)
    for term in pod.pod_anti_affinity:
        allowed &= ~_same_domain(
            term.topology_key, _nodes_matching([term], state, when_unknown=True), state
        )
    if pod.pod_affinity:
        allowed &= _affinity(pod, state)
    return allowed


def _affinity(pod: Pod, state: ClusterState) -> BoolArray:
    """A term holds where a pod runs that matches all terms; the first pod of its kind may start it.

    Source: kube-scheduler pkg/scheduler/framework/plugins/interpodaffinity/filtering.go,
    satisfyPodAffinity.
    """
    nodes = _nodes_matching(pod.pod_affinity, state, when_unknown=False)
    allowed = np.ones(len(state.nodes), np.bool_)
    is_first = not nodes and all(
        term_matches(term, pod, state, when_unknown=False) for term in pod.pod_affinity
    )
    for term in pod.pod_affinity:
        if is_first:
            allowed &= state.mask(v is not None for v in state.label_values(term.topology_key))
        else:
            allowed &= _same_domain(term.topology_key, nodes, state)
    return allowed


def term_matches(
    term: PodAffinityTerm, pod: Pod, state: ClusterState, *, when_unknown: bool
) -> bool:
    """Whether a term means that pod; `when_unknown` answers for namespaces not in the snapshot."""
    if term.selector is None or not selects(term.selector, pod.labels):
        return False
    if pod.namespace in term.namespaces:
        return True
    if term.namespace_selector is None:
        return False
    if not term.namespace_selector.requirements:
        return True
    labels = state.snapshot.labels_by_namespace.get(pod.namespace)
    return when_unknown if labels is None else selects(term.namespace_selector, labels)


def _nodes_matching(
    terms: Sequence[PodAffinityTerm], state: ClusterState, *, when_unknown: bool
) -> set[int]:
    """Indexes of the nodes with a pod that matches all terms."""
    return {
        node
        for pod, node in state.placements
        if all(term_matches(term, pod, state, when_unknown=when_unknown) for term in terms)
    }


def _same_domain(topology_key: str, nodes: set[int], state: ClusterState) -> BoolArray:
    """Which nodes share a topology value with one of those; a node without the label has none."""
    values = state.label_values(topology_key)
    domains = {values[node] for node in nodes} - {None}
    return state.mask(value in domains for value in values)


def _reasons(pod: Pod, state: ClusterState, node: int) -> tuple[str, ...]:
    reasons = []
    for other, other_node, term in state.placed_anti_affinity:
        if (
            term_matches(term, pod, state, when_unknown=True)
            and _same_domain(term.topology_key, {other_node}, state)[node]
        ):
            reasons.append(f"anti-affinity of pod {other.key} keeps it off ({term.topology_key})")
    for term in pod.pod_anti_affinity:
        nodes = _nodes_matching([term], state, when_unknown=True)
        if _same_domain(term.topology_key, nodes, state)[node]:
            reasons.append(f"its own anti-affinity bars the node ({term.topology_key})")
    if pod.pod_affinity and not _affinity(pod, state)[node]:
        keys = ", ".join(term.topology_key for term in pod.pod_affinity)
        reasons.append(f"its pod affinity is not met there ({keys})")
    return tuple(reasons)


INTER_POD_AFFINITY = Filter("InterPodAffinity", _allowed, _reasons)
