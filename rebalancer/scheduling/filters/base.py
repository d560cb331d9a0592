"""The shape of a filter."""

from collections.abc import Callable
from typing import NamedTuple

from rebalancer.model.objects import Pod
from rebalancer.scheduling.state import BoolArray, ClusterState


class Filter(NamedTuple):
    """A rule that a node must meet to take a pod."""

    name: str
    """The scheduler plugin's name."""
    allowed: Callable[[Pod, ClusterState], BoolArray]
    """Axis: node, in snapshot order."""
    reasons: Callable[[Pod, ClusterState, int], tuple[str, ...]]
    """Why that node, which is not allowed, is not."""
