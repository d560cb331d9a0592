"""NodeVolumeLimits: a node takes only so many volumes of a CSI driver.

Source: kube-scheduler v1.36.3 pkg/scheduler/framework/plugins/nodevolumelimits/csi.go. A volume
that a pod on the node uses already needs no further place there.
"""

from collections import Counter

import numpy as np

from rebalancer.model.objects import Pod
from rebalancer.scheduling.filters.base import Filter
from rebalancer.scheduling.state import BoolArray, ClusterState


def _allowed(pod: Pod, state: ClusterState) -> BoolArray:
    allowed = np.ones(len(state.nodes), np.bool_)
    drivers = {volume.driver for volume in state.volumes.of(pod)}
    if drivers and "CSINode" in state.snapshot.missing:
        return ~allowed
    for node in {node for driver in drivers for node in state.volumes.limits.get(driver, ())}:
        allowed[node] = not _reasons(pod, state, node)
    return allowed


def _reasons(pod: Pod, state: ClusterState, node: int) -> tuple[str, ...]:
    volumes = state.volumes
    new = volumes.of(pod) - volumes.in_use.get(node, frozenset())
    reasons = []
    for driver, count in sorted(Counter(volume.driver for volume in new).items()):
        room = volumes.room(driver, node)
        if "CSINode" in state.snapshot.missing:
            reasons.append(f"no CSINode is in the snapshot, so the limit of {driver} is not known")
        elif room is not None and "VolumeAttachment" in state.snapshot.missing:
            reasons.append(
                f"no VolumeAttachment is in the snapshot, so what {driver} has there is not known"
            )
        elif room is not None and room < count:
            reasons.append(f"volumes of {driver}: needs {count}, can take {max(room, 0)} more")
    return tuple(reasons)


NODE_VOLUME_LIMITS = Filter("NodeVolumeLimits", _allowed, _reasons)
