"""VolumeBinding: a volume must be reachable from the node, or must be made where it is.

An unbound claim allows those nodes where its class would make a volume once a pod is there. Volumes
that exist already and could be bound to it are not looked for: where nothing could be made, no
node is allowed.

Source: kube-scheduler v1.36.3 pkg/scheduler/framework/plugins/volumebinding/binder.go.
"""

from collections.abc import Iterable

import numpy as np

from rebalancer.model.objects import ObjectKey, PersistentVolume, PersistentVolumeClaim, Pod
from rebalancer.scheduling.claimed_volumes import claimed_volumes
from rebalancer.scheduling.filters.base import Filter
from rebalancer.scheduling.filters.node_affinity import describe, matches_any
from rebalancer.scheduling.state import BoolArray, ClusterState


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
    if not claim.volume_name:
        problem = _unmakeable(claim, state)
        return problem and f"PersistentVolumeClaim {key} is not bound to a volume, and {problem}"
    if not claim.is_bound:
        return f"PersistentVolumeClaim {key} waits for PersistentVolume {claim.volume_name}"
    volume = state.snapshot.volume_by_name.get(claim.volume_name)
    if volume is None:
        return f"PersistentVolume {claim.volume_name} is not in the snapshot"
    if volume.legacy_source:
        return (
            f"PersistentVolume {volume.name} is of the in-tree kind {volume.legacy_source}, whose"
            " CSI driver's rules are not modelled"
        )
    return ""


def _unmakeable(claim: PersistentVolumeClaim, state: ClusterState) -> str:
    """Why no volume would be made for an unbound claim, or why it is not known where."""
    snapshot = state.snapshot
    name = claim.storage_class
    if not name:
        return "it has no StorageClass that would make one"
    storage_class = snapshot.storage_class_by_name.get(name)
    if storage_class is None:
        return f"its StorageClass {name} is not in the snapshot"
    if not storage_class.waits_for_consumer:
        return f"StorageClass {name} makes one before the pod is scheduled"
    provisioner = storage_class.provisioner
    if provisioner.startswith("kubernetes.io/"):
        return f"provisioner {provisioner} of StorageClass {name} is not modelled"
    if "CSIDriver" in snapshot.missing:
        return f"no CSIDriver is in the snapshot, so whether {provisioner} has room is not known"
    driver = snapshot.csi_driver_by_name.get(provisioner)
    if driver is not None and driver.tracks_capacity:
        return f"what {provisioner} has room for is not modelled"
    return ""


def reaches(volumes: Iterable[PersistentVolume], state: ClusterState) -> BoolArray:
    """From which nodes all of the volumes can be reached."""
    reached = np.ones(len(state.nodes), np.bool_)
    for volume in volumes:
        if volume.node_affinity is not None:
            reached &= matches_any(volume.node_affinity, state)
    return reached


def _allowed(pod: Pod, state: ClusterState) -> BoolArray:
    if claim_problems(pod, state):
        return np.zeros(len(state.nodes), np.bool_)
    return reaches(claimed_volumes(pod, state.snapshot), state)


def _reasons(pod: Pod, state: ClusterState, node: int) -> tuple[str, ...]:
    reasons = list(claim_problems(pod, state))
    for volume in claimed_volumes(pod, state.snapshot):
        terms = volume.node_affinity
        if terms is not None and not matches_any(terms, state)[node]:
            wanted = " or ".join(describe(term) for term in terms)
            reasons.append(f"PersistentVolume {volume.name} is only at {wanted}")
    return tuple(reasons)


VOLUME_BINDING = Filter("VolumeBinding", _allowed, _reasons)
