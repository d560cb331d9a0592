"""VolumeBinding: a bound volume must be reachable from the node.

An unbound claim could still be bound elsewhere by the scheduler; which node that takes is not
modelled, so no node is allowed.
"""

import numpy as np

from rebalancer.model.objects import ObjectKey, Pod
from rebalancer.scheduling.filters.base import Filter
from rebalancer.scheduling.filters.node_affinity import describe, matches_any
from rebalancer.scheduling.state import BoolArray, ClusterState


def _allowed(pod: Pod, state: ClusterState) -> BoolArray:
    allowed = np.ones(len(state.nodes), np.bool_)
    for name in pod.claim_names:
        if _problem(pod.namespace, name, state):
            return np.zeros(len(state.nodes), np.bool_)
        claim = state.snapshot.claim_by_key[ObjectKey(pod.namespace, name)]
        affinity = state.snapshot.volume_by_name[claim.volume_name].node_affinity
        if affinity is not None:
            allowed &= matches_any(affinity, state)
    return allowed


def _problem(namespace: str, name: str, state: ClusterState) -> str:
    """Why nothing can be said about a claim; empty when its volume is known."""
    claim = state.snapshot.claim_by_key.get(ObjectKey(namespace, name))
    if claim is None:
        return f"PersistentVolumeClaim {namespace}/{name} is not in the snapshot"
    if not claim.volume_name:
        return f"PersistentVolumeClaim {namespace}/{name} is not bound to a volume"
    if claim.volume_name not in state.snapshot.volume_by_name:
        return f"PersistentVolume {claim.volume_name} is not in the snapshot"
    return ""


def _reasons(pod: Pod, state: ClusterState, node: int) -> tuple[str, ...]:
    reasons = []
    for name in pod.claim_names:
        if problem := _problem(pod.namespace, name, state):
            reasons.append(problem)
            continue
        claim = state.snapshot.claim_by_key[ObjectKey(pod.namespace, name)]
        affinity = state.snapshot.volume_by_name[claim.volume_name].node_affinity
        if affinity is not None and not matches_any(affinity, state)[node]:
            wanted = " or ".join(describe(term) for term in affinity)
            reasons.append(f"PersistentVolume {claim.volume_name} is only at {wanted}")
    return tuple(reasons)


VOLUME_BINDING = Filter("VolumeBinding", _allowed, _reasons)
