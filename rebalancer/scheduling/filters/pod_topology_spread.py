"""PodTopologySpread: constraints with `whenUnsatisfiable: DoNotSchedule`.

Source: kube-scheduler v1.36.3 pkg/scheduler/framework/plugins/podtopologyspread.
"""

from collections.abc import Iterator

import numpy as np

from rebalancer.model.objects import Pod, TopologySpreadConstraint
from rebalancer.scheduling.filters.base import Filter
from rebalancer.scheduling.filters.node_affinity import NODE_AFFINITY
from rebalancer.scheduling.filters.taint_toleration import TAINT_TOLERATION
from rebalancer.scheduling.matching import selects
from rebalancer.scheduling.state import BoolArray, ClusterState, IntArray


def skews(
    pod: Pod, state: ClusterState
) -> Iterator[tuple[TopologySpreadConstraint, IntArray, BoolArray]]:
    """For each constraint the skew on each node with the pod there, and which nodes it allows."""
    has_all_keys = np.ones(len(state.nodes), np.bool_)
    for constraint in pod.topology_spread:
        has_all_keys &= state.domains(constraint.topology_key) >= 0
    for constraint in pod.topology_spread:
        counted = has_all_keys.copy()
        if constraint.honors_node_affinity:
            counted &= NODE_AFFINITY.allowed(pod, state)
        if constraint.honors_node_taints:
            counted &= TAINT_TOLERATION.allowed(pod, state)
        skew = _skew(constraint, pod, state, counted)
        domains = state.domains(constraint.topology_key)
        yield constraint, skew, (domains >= 0) & (skew <= constraint.max_skew)


def _skew(
    constraint: TopologySpreadConstraint, pod: Pod, state: ClusterState, counted: BoolArray
) -> IntArray:
    """Pods in the node's domain, this one included, more than in the emptiest domain.

    Pods that are only expected count in their domain and never raise the minimum: the scheduler
    looks at nominated pods with and without them, and the pod must pass both.
    """
    domains = state.domains(constraint.topology_key)
    placed = state.placed
    matching = placed.selected(constraint.selector, lambda name: name == pod.namespace)
    matching = matching[~placed.is_terminating[matching] & counted[placed.node[matching]]]
    is_there = placed.is_bound[matching]
    if constraint.selector is not None and not constraint.selector.requirements:
        # One that selects everything counts nobody who is there, and the pod itself.
        matching = matching[~is_there]
        is_there = np.zeros(len(matching), np.bool_)
    size = len(state.nodes)
    there = np.bincount(domains[placed.node[matching[is_there]]], minlength=size)
    expected = np.bincount(domains[placed.node[matching]], minlength=size)
    known_domains = np.unique(domains[counted])
    has_enough = len(known_domains) >= max(constraint.min_domains, 1)
    minimum = int(there[known_domains].min()) if has_enough else 0
    is_itself_counted = constraint.selector is not None and selects(constraint.selector, pod.labels)
    skew: IntArray = expected[domains] + int(is_itself_counted) - minimum
    return skew


def _allowed(pod: Pod, state: ClusterState) -> BoolArray:
    allowed = np.ones(len(state.nodes), np.bool_)
    for _, _, mask in skews(pod, state):
        allowed &= mask
    return allowed


def _reasons(pod: Pod, state: ClusterState, node: int) -> tuple[str, ...]:
    reasons = []
    for constraint, skew, mask in skews(pod, state):
        key = constraint.topology_key
        if state.domains(key)[node] < 0:
            reasons.append(f"node has no label {key}, over which the pod is to be spread")
        elif not mask[node]:
            limit = constraint.max_skew
            reasons.append(f"spread over {key}: skew would be {skew[node]}, may be {limit}")
    return tuple(reasons)


POD_TOPOLOGY_SPREAD = Filter("PodTopologySpread", _allowed, _reasons)
