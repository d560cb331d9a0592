"""The volumes behind a pod's claims: those that exist, and those that would be made for it."""

from collections.abc import Iterator

from rebalancer.model.objects import (
    CsiVolume,
    NodeSelectorTerm,
    ObjectKey,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    Requirement,
    StorageClass,
)
from rebalancer.model.snapshot import Snapshot


def claimed_volumes(pod: Pod, snapshot: Snapshot) -> Iterator[PersistentVolume]:
    """The volumes of the pod's claims, as far as anything is known of them."""
    yield from existing_volumes(pod, snapshot)
    yield from volumes_to_make(pod, snapshot)


def existing_volumes(pod: Pod, snapshot: Snapshot) -> Iterator[PersistentVolume]:
    for claim in _claims(pod, snapshot):
        volume = snapshot.volume_by_name.get(claim.volume_name)
        if volume is not None:
            yield volume


def volumes_to_make(pod: Pod, snapshot: Snapshot) -> Iterator[PersistentVolume]:
    for claim in _claims(pod, snapshot):
        storage_class = snapshot.storage_class_by_name.get(claim.storage_class)
        if storage_class is not None and not claim.volume_name:
            yield _to_be_made(claim, storage_class)


def _claims(pod: Pod, snapshot: Snapshot) -> Iterator[PersistentVolumeClaim]:
    for name in pod.claim_names:
        claim = snapshot.claim_by_key.get(ObjectKey(pod.namespace, name))
        if claim is not None:
            yield claim


def _to_be_made(claim: PersistentVolumeClaim, storage_class: StorageClass) -> PersistentVolume:
    """The volume that the class's provisioner would make: reachable wherever it may be made.

    Source: checkVolumeProvisions in kubernetes v1.36.3
    pkg/scheduler/framework/plugins/volumebinding/binder.go, and getCSIDriverInfoFromSC in
    nodevolumelimits/csi.go.
    """
    terms = storage_class.allowed_topologies
    if claim.selected_node:
        node = Requirement("metadata.name", "In", (claim.selected_node,))
        anywhere = (NodeSelectorTerm(),)
        terms = tuple(
            NodeSelectorTerm(term.expressions, (node,))
            for term in (anywhere if terms is None else terms)
        )
    handle = f"{claim.namespace}/{claim.name}"
    return PersistentVolume(
        name=f"for claim {handle}",
        node_affinity=terms,
        csi=CsiVolume(storage_class.provisioner, handle),
    )
