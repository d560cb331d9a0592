"""InterPodAffinity: required terms both ways, the pods that are there being asked as well.

Source: kube-scheduler v1.36.3 pkg/scheduler/framework/plugins/interpodaffinity/filtering.go. Pods
that are only expected on a node can keep a pod off and never draw it there, which is how the
scheduler treats nominated pods.

A pod's own terms may mean more namespaces than they say. In v1.36.3, PreFilter merges those that a
namespace selector selects into a copy of the term and leaves the selector in place, which is then
asked about a namespace without labels; so one like `team DoesNotExist` means every namespace.
Other releases do as documented. Here anti-affinity keeps off, and affinity draws, only where both
readings agree.
"""

from collections.abc import Iterable, Sequence
from functools import partial, reduce
from typing import NamedTuple

import numpy as np

from rebalancer.model.objects import Pod, PodAffinityTerm
from rebalancer.scheduling.filters.base import Filter
from rebalancer.scheduling.matching import selects
from rebalancer.scheduling.own_launchers import is_off_its_launchers
from rebalancer.scheduling.placed_pods import NamespaceTest
from rebalancer.scheduling.state import BoolArray, ClusterState, IntArray


def barring_terms(pod: Pod, state: ClusterState) -> tuple[PodAffinityTerm, ...]:
    """Anti-affinity terms of the pods that are there that mean this one."""
    candidates = state.placed_terms.candidates(pod)
    return tuple(term for term in candidates if _means(term, pod, state, in_doubt=True))


class BarringGroups(NamedTuple):
    """Launcher pods of running VMs by what bars the target pods of their migrations."""

    group: IntArray
    """For each placed pod the index of its terms."""
    terms: Sequence[tuple[PodAffinityTerm, ...]]
    """Anti-affinity of other VMs' pods and the like. That which a launcher pod has against its VM's
    other launchers is left out: it only bars its own node, and each VM would be a group."""


def barring_groups(state: ClusterState) -> BarringGroups:
    """Groups the placed pods by the `barring_terms` of pods like them."""
    placed = state.placed
    group = np.zeros(len(placed.pods), np.int64)
    index_of: dict[tuple[PodAffinityTerm, ...], int] = {(): 0}
    terms: list[tuple[PodAffinityTerm, ...]] = [()]
    for term in state.placed_terms.holders:
        if bars_only_its_own(term, state):
            continue
        barred = barred_pods(term, state)
        before, which = np.unique(group[barred], return_inverse=True)
        after = []
        for index in before.tolist():
            more = (*terms[index], term)
            after.append(index_of.setdefault(more, len(terms)))
            if after[-1] == len(terms):
                terms.append(more)
        group[barred] = np.array(after, np.int64)[which]
    return BarringGroups(group, terms)


def bars_only_its_own(term: PodAffinityTerm, state: ClusterState) -> bool:
    """Whether those that have it have it against their VM's other launchers."""
    [holder, *_] = state.placed_terms.holders[term]
    return is_off_its_launchers(term, state.placed.pods[holder])


def barred_pods(term: PodAffinityTerm, state: ClusterState) -> IntArray:
    """Positions of the placed pods whose like the term of a pod that is there keeps off."""
    return state.placed.selected(term.selector, _namespace_test(term, state, in_doubt=True))


def _allowed(pod: Pod, state: ClusterState) -> BoolArray:
    return clear_of(barring_terms(pod, state), state) & own_terms_allow(pod, state)


def clear_of(terms: Iterable[PodAffinityTerm], state: ClusterState) -> BoolArray:
    """Which nodes share no domain with a pod that has one of these terms."""
    barred = np.zeros(len(state.nodes), np.bool_)
    for term in terms:
        nodes = state.placed.node[state.placed_terms.holders[term]]
        barred |= state.sharing_domain(term.topology_key, nodes)
    return ~barred


def own_terms_allow(pod: Pod, state: ClusterState) -> BoolArray:
    """Which nodes meet the pod's own affinity and anti-affinity."""
    return meets_own_anti_affinity(pod, state) & meets_own_affinity(pod, state)


def meets_own_anti_affinity(pod: Pod, state: ClusterState) -> BoolArray:
    """Which nodes share no domain with a pod that its anti-affinity means."""
    barred = np.zeros(len(state.nodes), np.bool_)
    for term in pod.pod_anti_affinity:
        nodes = state.placed.node[meant_pods(term, state, in_doubt=True)]
        barred |= state.sharing_domain(term.topology_key, nodes)
    return ~barred


def meets_own_affinity(pod: Pod, state: ClusterState) -> BoolArray:
    """Each term holds where a pod runs that all terms mean; the first pod of its kind, which
    means itself and finds nobody, may start anywhere. The node must have every topology label.
    """
    allowed = np.ones(len(state.nodes), np.bool_)
    if not pod.pod_affinity:
        return allowed
    nodes = _nodes_with_all_meant(pod, state, in_doubt=False)
    perhaps = _nodes_with_all_meant(pod, state, in_doubt=True)
    keys = [term.topology_key for term in pod.pod_affinity]
    is_first = not any((state.domains(key)[perhaps] >= 0).any() for key in keys) and all(
        _means(term, pod, state, in_doubt=False) for term in pod.pod_affinity
    )
    for key in keys:
        allowed &= state.domains(key) >= 0 if is_first else state.sharing_domain(key, nodes)
    return allowed


def _nodes_with_all_meant(pod: Pod, state: ClusterState, *, in_doubt: bool) -> IntArray:
    """Nodes of the pods that are there and that all terms of the pod's affinity mean."""
    meant = [meant_pods(term, state, in_doubt=in_doubt) for term in pod.pod_affinity]
    by_all = reduce(partial(np.intersect1d, assume_unique=True), meant)
    return state.placed.node[by_all[state.placed.is_bound[by_all]]]


def _means(term: PodAffinityTerm, pod: Pod, state: ClusterState, *, in_doubt: bool) -> bool:
    """`in_doubt` answers for a namespace whose labels the snapshot does not have."""
    if term.selector is None or not selects(term.selector, pod.labels):
        return False
    return _includes(term, state, pod.namespace, in_doubt=in_doubt)


def meant_pods(term: PodAffinityTerm, state: ClusterState, *, in_doubt: bool) -> IntArray:
    """Positions of the placed pods that a term of a pod to come means."""
    selector = term.namespace_selector
    if in_doubt and selector is not None and selects(selector, {}):
        return state.placed.selected(term.selector)
    return state.placed.selected(term.selector, _namespace_test(term, state, in_doubt=in_doubt))


def _namespace_test(
    term: PodAffinityTerm, state: ClusterState, *, in_doubt: bool
) -> NamespaceTest | None:
    """Whether the term means a namespace; None where it means all."""
    selector = term.namespace_selector
    if selector is not None and not selector.requirements:
        return None
    return partial(_includes, term, state, in_doubt=in_doubt)


def _includes(
    term: PodAffinityTerm, state: ClusterState, namespace: str, *, in_doubt: bool
) -> bool:
    if namespace in term.namespaces:
        return True
    if term.namespace_selector is None:
        return False
    if not term.namespace_selector.requirements:
        return True
    labels = state.snapshot.labels_by_namespace.get(namespace)
    return in_doubt if labels is None else selects(term.namespace_selector, labels)


def _reasons(pod: Pod, state: ClusterState, node: int) -> tuple[str, ...]:
    reasons = []
    for term in barring_terms(pod, state):
        for position in state.placed_terms.holders[term]:
            nodes = state.placed.node[[position]]
            if state.sharing_domain(term.topology_key, nodes)[node]:
                other = state.placed.pods[position].key
                reasons.append(f"anti-affinity of pod {other} keeps it off ({term.topology_key})")
    for term in pod.pod_anti_affinity:
        nodes = state.placed.node[meant_pods(term, state, in_doubt=True)]
        if state.sharing_domain(term.topology_key, nodes)[node]:
            reasons.append(f"its own anti-affinity bars the node ({term.topology_key})")
    if not meets_own_affinity(pod, state)[node]:
        keys = ", ".join(term.topology_key for term in pod.pod_affinity)
        reasons.append(f"its pod affinity is not met there ({keys})")
    return tuple(reasons)


INTER_POD_AFFINITY = Filter("InterPodAffinity", _allowed, _reasons)
