"""NodePorts: a port of the node can be taken once, on each address and for each protocol.

Source: HostPortInfo in k8s.io/kube-scheduler v0.36.3 framework/types.go.
"""

import numpy as np

from rebalancer.model.objects import Pod
from rebalancer.scheduling.filters.base import Filter
from rebalancer.scheduling.state import BoolArray, ClusterState


def _allowed(pod: Pod, state: ClusterState) -> BoolArray:
    allowed = np.ones(len(state.nodes), np.bool_)
    if pod.host_ports:
        for taken, _, node in state.placed_host_ports:
            if any(port.conflicts_with(taken) for port in pod.host_ports):
                allowed[node] = False
    return allowed


def _reasons(pod: Pod, state: ClusterState, node: int) -> tuple[str, ...]:
    return tuple(
        f"host port {port.port}/{port.protocol} is taken by pod {other.key}"
        for port in pod.host_ports
        for taken, other, index in state.placed_host_ports
        if index == node and port.conflicts_with(taken)
    )


NODE_PORTS = Filter("NodePorts", _allowed, _reasons)
