"""NodeAffinity: node selector and required node affinity."""

from collections.abc import Sequence

import numpy as np

from rebalancer.model.objects import NodeSelectorTerm, Pod, Requirement
from rebalancer.scheduling.filters.base import Filter
from rebalancer.scheduling.matching import meets
from rebalancer.scheduling.state import BoolArray, ClusterState


def matches_any(terms: Sequence[NodeSelectorTerm], state: ClusterState) -> BoolArray:
    """Which nodes match one of the terms. An empty term matches none.

    Source: k8s.io/component-helpers scheduling/corev1/nodeaffinity/nodeaffinity.go.
    """
    matched = np.zeros(len(state.nodes), np.bool_)
    for term in terms:
        if not term.expressions and not term.fields:
            continue
        mask = np.ones(len(state.nodes), np.bool_)
        for expression in term.expressions:
            mask &= _meets_label(expression, state)
        for field in term.fields:
            # The API only admits metadata.name here.
            mask &= state.mask(meets(field, node.name) for node in state.nodes)
        matched |= mask
    return matched


def describe(term: NodeSelectorTerm) -> str:
    return " and ".join(
        f"{req.key} {req.operator} {', '.join(req.values)}".rstrip()
        for req in (*term.expressions, *term.fields)
    )


def _meets_label(requirement: Requirement, state: ClusterState) -> BoolArray:
    if requirement.operator == "In":
        mask = np.zeros(len(state.nodes), np.bool_)
        for value in requirement.values:
            mask |= state.has_label(requirement.key, value)
        return mask
    return state.mask(meets(requirement, value) for value in state.label_values(requirement.key))


def _allowed(pod: Pod, state: ClusterState) -> BoolArray:
    allowed = state.has_labels(pod.node_selector)
    if pod.node_affinity is None:
        return allowed
    return allowed & matches_any(pod.node_affinity, state)


def _reasons(pod: Pod, state: ClusterState, node: int) -> tuple[str, ...]:
    labels = state.nodes[node].labels
    reasons = [
        f"node selector wants {key}={value}, node has {labels.get(key, 'no such label')}"
        for key, value in sorted(pod.node_selector.items())
        if labels.get(key) != value
    ]
    if pod.node_affinity is not None and not matches_any(pod.node_affinity, state)[node]:
        wanted = " or ".join(describe(term) for term in pod.node_affinity)
        reasons.append(f"node affinity wants {wanted}")
    return tuple(reasons)


NODE_AFFINITY = Filter("NodeAffinity", _allowed, _reasons)
