"""VolumeBinding: a bound volume must be reachable from the node.

An unbound claim could still be bound by the scheduler to a volume elsewhere; which node that takes
is not modelled, so no node is allowed.
"""

from collections.abc import Iterator

import numpy as np

from rebalancer.model.objects import ObjectKey, PersistentVolume, Pod
from rebalancer.scheduling.filters.base import Filter
from rebalancer.scheduling.filters.node_affinity import describe, matches_any
from rebalancer.scheduling.state import BoolArray, ClusterState


def bound_volumes(pod: Pod, state: ClusterState) -> Iterator[PersistentVolume]:
    """The volumes of the pod's claims, as far as they have any that is known."""
    for name in pod.claim_names:
        claim = state.snapshot.claim_by_key.get(ObjectKey(pod.namespace, name))
        volume = state.snapshot.volume_by_name.get(claim.volume_name) if claim else None
        if volume is not None:
            yield volume


def claim_problems(pod: Pod, state: ClusterState) -> tuple[str, ...]:
    """Why nothing can be said about a claim, or why it keeps the pod from every node."""
    problems = (_problem(ObjectKey(pod.namespace, name), state) for name in pod.claim_names)
    return tuple(problem for problem in problems if problem)


def _problem(key: ObjectKey, state: ClusterState) -> str:
    claim = state.snapshot.claim_by_key.get(key)
    if claim is None:
        return f"PersistentVolumeClaim {key} is not in the snapshot"
    if claim.is_terminating:
        return f"PersistentVolumeClaim {key} is being deleted"
    if claim.is_lost:
        return f"PersistentVolumeClaim {key} has lost its volume"
    if not claim.volume_name or not claim.is_bound:
        return f"PersistentVolumeClaim {key} is not bound to a volume"
    volume = state.snapshot.volume_by_name.get(claim.volume_name)
    if volume is None:
        return f"PersistentVolume {claim.volume_name} is not in the snapshot"
    if volume.legacy_source:
        return (
            f"PersistentVolume {volume.name} is of the in-tree kind {volume.legacy_source}, whose"
            " CSI driver's rules are not modelled"
        )
    return ""


def _allowed(pod: Pod, state: ClusterState) -> BoolArray:
    allowed = np.ones(len(state.nodes), np.bool_)
    if claim_problems(pod, state):
        return ~allowed
    for volume in bound_volumes(pod, state):
        if volume.node_affinity is not None:
            allowed &= matches_any(volume.node_affinity, state)
    return allowed


def _reasons(pod: Pod, state: ClusterState, node: int) -> tuple[str, ...]:
    reasons = list(claim_problems(pod, state))
    for volume in bound_volumes(pod, state):
        terms = volume.node_affinity
        if terms is not None and not matches_any(terms, state)[node]:
            wanted = " or ".join(describe(term) for term in terms)
            reasons.append(f"PersistentVolume {volume.name} is only at {wanted}")
    return tuple(reasons)


VOLUME_BINDING = Filter("VolumeBinding", _allowed, _reasons)
