"""VolumeZone: a volume labelled with a zone or region is only reachable from nodes in it.

Source: kube-scheduler v1.36.3 pkg/scheduler/framework/plugins/volumezone/volume_zone.go. A node
without any such label passes: its cluster has one zone.
"""

import numpy as np

from rebalancer.model.keys import TOPOLOGY_LABELS
from rebalancer.model.objects import PersistentVolume, Pod, Requirement
from rebalancer.scheduling.claimed_volumes import claimed_volumes
from rebalancer.scheduling.filters.base import Filter
from rebalancer.scheduling.matching import meets
from rebalancer.scheduling.state import BoolArray, ClusterState


def _allowed(pod: Pod, state: ClusterState) -> BoolArray:
    allowed = np.ones(len(state.nodes), np.bool_)
    for volume in claimed_volumes(pod, state.snapshot):
        for zone in volume.zones:
            allowed &= _reaches(zone, state)
    return allowed


def _reaches(zone: Requirement, state: ClusterState) -> BoolArray:
    values = state.label_values(zone.key)
    today = state.label_values(TOPOLOGY_LABELS[zone.key])
    pairs = zip(values, today, strict=True)
    is_met = state.mask(meets(zone, old if old is not None else new) for old, new in pairs)
    return is_met | state.mask(not TOPOLOGY_LABELS.keys() & node.labels for node in state.nodes)


def _reasons(pod: Pod, state: ClusterState, node: int) -> tuple[str, ...]:
    return tuple(
        _reason(volume, zone)
        for volume in claimed_volumes(pod, state.snapshot)
        for zone in volume.zones
        if not _reaches(zone, state)[node]
    )


def _reason(volume: PersistentVolume, zone: Requirement) -> str:
    return f"PersistentVolume {volume.name} is only in {zone.key} {', '.join(zone.values)}"


VOLUME_ZONE = Filter("VolumeZone", _allowed, _reasons)
