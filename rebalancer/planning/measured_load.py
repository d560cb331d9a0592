"""Which nodes are busy, judged by readings over a while instead of by the last one."""

from collections.abc import Mapping
from datetime import timedelta
from statistics import fmean

from msgspec import Struct

from rebalancer.model.measured_load import MeasuredLoad, Reading
from rebalancer.model.plan import Reason
from rebalancer.model.snapshot import Snapshot
from rebalancer.policy.measured_load import MeasuredLoadPolicy

_FRESH_STEPS = 2
"""A reading may be late by one step, since Prometheus collects in its own rhythm."""


class NodeLoad(Struct, frozen=True):
    """How busy a node is, as a share from 0 to 1."""

    share: float
    """Mean of the readings of the window."""
    latest: tuple[float, ...]
    """The last `hotAfterReadings` readings, oldest first."""

    latest_pressure: tuple[float, ...] = ()
    """Likewise of the share of the time that its tasks wait; empty where that is not known."""

    def is_hot(self, threshold: float) -> bool:
        """Whether all of the latest readings are above the threshold: a peak is no reason."""
        return min(self.latest) > threshold

    def is_under_pressure(self, threshold: float) -> bool:
        return min(self.latest_pressure, default=0.0) > threshold


class NodeLoads(Struct, frozen=True):
    by_node: Mapping[str, NodeLoad] = {}
    left_out: tuple[Reason, ...] = ()
    """Why nodes of the snapshot are not there, in their order; or why none is."""


def node_loads(snapshot: Snapshot, policy: MeasuredLoadPolicy) -> NodeLoads:
    """The load of each node that has enough readings, the last of them fresh."""
    load = snapshot.measured_load
    if load is None:
        text = "nothing is measured here; see prometheus.url in the policy"
        return NodeLoads(left_out=(Reason("load-not-measured", text),))
    if load.problem:
        return NodeLoads(left_out=(Reason("load-missing", load.problem),))
    by_node: dict[str, NodeLoad] = {}
    left_out: list[Reason] = []
    for node in snapshot.nodes:
        readings = load.readings.get(node.name, ())
        if reason := _objection(node.name, readings, load, policy):
            left_out.append(reason)
        else:
            pressure = load.pressure.get(node.name, ())
            if _objection(node.name, pressure, load, policy):
                pressure = ()
            by_node[node.name] = NodeLoad(
                share=fmean(reading.share for reading in readings),
                latest=_latest(readings, policy),
                latest_pressure=_latest(pressure, policy),
            )
    return NodeLoads(by_node, tuple(left_out))


def _latest(readings: tuple[Reading, ...], policy: MeasuredLoadPolicy) -> tuple[float, ...]:
    return tuple(reading.share for reading in readings[-policy.hot_after_readings :])


def _objection(
    node: str, readings: tuple[Reading, ...], load: MeasuredLoad, policy: MeasuredLoadPolicy
) -> Reason | None:
    if problem := load.left_out.get(node):
        return Reason("unusable-readings", problem, node)
    if not readings:
        text = f"no reading within {policy.window_seconds} s"
        return Reason("no-readings", text, node)
    age = load.measured_at - readings[-1].at
    if age > _FRESH_STEPS * timedelta(seconds=policy.step_seconds):
        text = f"the last reading is {age.total_seconds():.0f} s old"
        return Reason("stale-readings", text, node)
    if len(readings) < policy.hot_after_readings:
        text = (
            f"{len(readings)} readings within {policy.window_seconds} s; it takes"
            f" {policy.hot_after_readings} to judge"
        )
        return Reason("few-readings", text, node)
    return None
