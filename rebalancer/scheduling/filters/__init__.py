"""One kube-scheduler Filter plugin per module, each a boolean array over nodes and a reason."""

from rebalancer.scheduling.filters.base import Filter
from rebalancer.scheduling.filters.inter_pod_affinity import INTER_POD_AFFINITY
from rebalancer.scheduling.filters.node_affinity import NODE_AFFINITY
from rebalancer.scheduling.filters.node_name import NODE_NAME
from rebalancer.scheduling.filters.node_ports import NODE_PORTS
from rebalancer.scheduling.filters.node_ready import NODE_READY
from rebalancer.scheduling.filters.node_resources_fit import NODE_RESOURCES_FIT
from rebalancer.scheduling.filters.node_unschedulable import NODE_UNSCHEDULABLE
from rebalancer.scheduling.filters.node_volume_limits import NODE_VOLUME_LIMITS
from rebalancer.scheduling.filters.pod_topology_spread import POD_TOPOLOGY_SPREAD
from rebalancer.scheduling.filters.scheduling_gates import SCHEDULING_GATES
from rebalancer.scheduling.filters.taint_toleration import TAINT_TOLERATION
from rebalancer.scheduling.filters.volume_binding import VOLUME_BINDING
from rebalancer.scheduling.filters.volume_restrictions import VOLUME_RESTRICTIONS
from rebalancer.scheduling.filters.volume_zone import VOLUME_ZONE

STATIC_RULES: tuple[Filter, ...] = (
    SCHEDULING_GATES,
    NODE_UNSCHEDULABLE,
    NODE_READY,
    NODE_NAME,
    TAINT_TOLERATION,
    NODE_AFFINITY,
    VOLUME_BINDING,
    VOLUME_ZONE,
)
"""What a node and a pod say of themselves: no move of other pods changes the answer."""

PLACEMENT_RULES: tuple[Filter, ...] = (
    NODE_PORTS,
    VOLUME_RESTRICTIONS,
    NODE_VOLUME_LIMITS,
    POD_TOPOLOGY_SPREAD,
    INTER_POD_AFFINITY,
)
"""What depends on which pods are where, so that other moves may change the answer."""

RULES = STATIC_RULES + PLACEMENT_RULES
"""Everything but room."""

__all__ = ["NODE_RESOURCES_FIT", "PLACEMENT_RULES", "RULES", "STATIC_RULES", "Filter"]
