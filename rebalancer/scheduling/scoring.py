"""How the scheduler chooses between nodes that would all take a pod."""

import numpy as np
from numpy.typing import NDArray

from rebalancer.model.objects import Pod
from rebalancer.scheduling.state import ClusterState


def least_allocated(pod: Pod, state: ClusterState) -> NDArray[np.float64]:
    """What share of cpu and memory is left with the pod there, on average. Axis: node.

    Source: kube-scheduler v1.36.3 pkg/scheduler/framework/plugins/noderesources/
    least_allocated.go, the score that counts where no rule prefers a node.
    """
    shares = [
        (state.headroom(resource) - pod.requests.get(resource, 0))
        / np.maximum(state.allocatable(resource), 1)
        for resource in ("cpu", "memory")
    ]
    left: NDArray[np.float64] = np.mean(shares, axis=0)
    return left
