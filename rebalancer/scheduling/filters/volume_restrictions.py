"""VolumeRestrictions: a claim with access mode ReadWriteOncePod is for one pod in the cluster.

The older rules, about volumes that pods name without a claim, are not decided here.
"""

import numpy as np

from rebalancer.model.objects import ObjectKey, Pod
from rebalancer.scheduling.filters.base import Filter
from rebalancer.scheduling.state import BoolArray, ClusterState


def claim_conflicts(pod: Pod, state: ClusterState) -> tuple[str, ...]:
    """Which of its claims another pod has for itself."""
    conflicts = []
    for name in pod.claim_names:
        key = ObjectKey(pod.namespace, name)
        claim = state.snapshot.claim_by_key.get(key)
        user = state.claims_in_use.get(key)
        if claim is not None and claim.is_read_write_once_pod and user is not None:
            conflicts.append(
                f"PersistentVolumeClaim {key} is ReadWriteOncePod, and pod {user.key} has it"
            )
    return tuple(conflicts)


def _allowed(pod: Pod, state: ClusterState) -> BoolArray:
    return np.full(len(state.nodes), not claim_conflicts(pod, state))


def _reasons(pod: Pod, state: ClusterState, _node: int) -> tuple[str, ...]:
    return claim_conflicts(pod, state)


VOLUME_RESTRICTIONS = Filter("VolumeRestrictions", _allowed, _reasons)
