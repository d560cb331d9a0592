"""One kube-scheduler Filter plugin per module, each a boolean array over nodes and a reason."""

from rebalancer.scheduling.filters.base import Filter
from rebalancer.scheduling.filters.inter_pod_affinity import INTER_POD_AFFINITY
from rebalancer.scheduling.filters.node_affinity import NODE_AFFINITY
from rebalancer.scheduling.filters.node_ready import NODE_READY
from rebalancer.scheduling.filters.node_resources_fit import NODE_RESOURCES_FIT
from rebalancer.scheduling.filters.node_unschedulable import NODE_UNSCHEDULABLE
from rebalancer.scheduling.filters.taint_toleration import TAINT_TOLERATION
from rebalancer.scheduling.filters.volume_binding import VOLUME_BINDING

RULES: tuple[Filter, ...] = (
    NODE_UNSCHEDULABLE,
    NODE_READY,
    TAINT_TOLERATION,
    NODE_AFFINITY,
    VOLUME_BINDING,
    INTER_POD_AFFINITY,
)
"""Everything but room, in the order in which the scheduler asks."""

__all__ = ["INTER_POD_AFFINITY", "NODE_RESOURCES_FIT", "RULES", "Filter"]
