"""What nodes and VMs really use, as a monitoring system has measured it."""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from msgspec import Struct

from rebalancer.model.objects import ObjectKey


class Reading(NamedTuple):
    at: datetime
    share: float
    """How busy the node was, or how long its tasks waited, from 0 to 1."""


class MeasuredLoad(Struct, frozen=True):
    """Readings of one resource up to `measured_at`; what could not be used has a reason."""

    measured_at: datetime
    resource: str
    """What `readings` are a share of and `usage` is an amount of: `cpu` or `memory`."""
    readings: Mapping[str, tuple[Reading, ...]] = {}
    """Node name to the readings of the window, oldest first; without those that were no number."""
    pressure: Mapping[str, tuple[Reading, ...]] = {}
    """As `readings`: the share of the time that tasks of the node waited for the resource."""
    left_out: Mapping[str, str] = {}
    """Node name to why what was measured of it is of no use; such a node has no readings."""
    usage: Mapping[ObjectKey, int] = {}
    """VMI to what it uses, in millicores or bytes; a VMI without an entry was not measured."""
    problem: str = ""
    """Why nothing at all was measured; empty when something was."""
