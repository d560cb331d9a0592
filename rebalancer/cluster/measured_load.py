"""From what Prometheus answers to the load of nodes and the usage of VMs."""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from rebalancer.cluster.prometheus import LatestSample, Prometheus, PrometheusError, Series
from rebalancer.model.keys import HOSTNAME
from rebalancer.model.measured_load import MeasuredLoad, Reading
from rebalancer.model.objects import Node, ObjectKey
from rebalancer.model.snapshot import Snapshot
from rebalancer.policy.measured_load import MeasuredLoadPolicy

_TOLERANCE = 0.1
"""rate() extrapolates to the ends of its range, so a share may come out a little below 0 or above
1; what is further away is something else, such as a percentage."""

_UNITS = {"cpu": 1000, "memory": 1}
"""Of what the model counts in one core, and in one byte."""

_MOST = 2**63 - 1
_SHOWN_CHARACTERS = 80
_PORT = re.compile(r"^\[?([^\]]+?)\]?:[0-9]+$")
"""As in `10.0.0.1:9100` and `[fd00::1]:9100`."""


class LoadReader:
    """Measures the nodes and VMs of a snapshot."""

    def __init__(self, prometheus: Prometheus, policy: MeasuredLoadPolicy) -> None:
        self._prometheus = prometheus
        self._policy = policy

    def read(self, snapshot: Snapshot) -> MeasuredLoad:
        """Up to when the snapshot was taken. What goes wrong is in `problem`, never raised:
        plans that do not go by measured load are made without it.
        """
        try:
            return self._read(snapshot)
        except PrometheusError as error:
            return MeasuredLoad(snapshot.taken_at, self._policy.resource, problem=str(error))

    def _read(self, snapshot: Snapshot) -> MeasuredLoad:
        policy, left_out = self._policy, dict[str, str]()
        readings = self._of_nodes("nodeQuery", policy.node_query, snapshot, left_out)
        pressure: dict[str, tuple[Reading, ...]] = {}
        if policy.pressure_query is not None:
            pressure = self._of_nodes("pressureQuery", policy.pressure_query, snapshot, left_out)
        return MeasuredLoad(
            measured_at=snapshot.taken_at,
            resource=policy.resource,
            readings={node: found for node, found in readings.items() if node not in left_out},
            pressure=pressure,
            left_out=left_out,
            usage=self._usage(snapshot, snapshot.taken_at.timestamp()),
        )

    def _of_nodes(
        self, key: str, query: str, snapshot: Snapshot, left_out: dict[str, str]
    ) -> dict[str, tuple[Reading, ...]]:
        """By node; one whose series are of no use gets into `left_out`."""
        policy, end = self._policy, snapshot.taken_at.timestamp()
        start = end - policy.window_seconds
        readings: dict[str, tuple[Reading, ...]] = {}
        try:
            series = self._prometheus.query_range(query, start, end, policy.step_seconds)
            by_node = _by_node(series, snapshot.nodes, policy.node_label)
        except PrometheusError as error:
            raise PrometheusError(f"measuredLoad.{key}: {error}") from error
        for node, found in by_node.items():
            try:
                readings[node] = _readings(found, start, end)
            except _UnusableError as error:
                left_out[node] = f"measuredLoad.{key}: {error}"
        return readings

    def _usage(self, snapshot: Snapshot, at: float) -> Mapping[ObjectKey, int]:
        if self._policy.vm_query is None:
            return {}
        try:
            samples = self._prometheus.query(self._policy.vm_query, at)
        except PrometheusError as error:
            raise PrometheusError(f"measuredLoad.vmQuery: {error}") from error
        return _usage(samples, snapshot.vmi_by_key, _UNITS[self._policy.resource])


class _UnusableError(Exception):
    """What was measured of a node says nothing about its load; the text says why."""


def _by_node(
    series: Sequence[Series], nodes: Sequence[Node], label: str
) -> Mapping[str, list[Series]]:
    """Node name to its series.

    Raises: PrometheusError if there are none at all, as a wrong query or label has it.
    """
    if not series:
        raise PrometheusError("gives nothing; try it in Prometheus")
    names = _names(nodes)
    found: dict[str, list[Series]] = defaultdict(list)
    for each in series:
        value = each.metric.get(label, "")
        name = names.get(value) or names.get(_PORT.sub(r"\1", value))
        if name is not None:
            found[name].append(each)
    if not found:
        first = series[0].metric.get(label)
        shown = f"{first[:_SHOWN_CHARACTERS]!r}, which is no node" if first else "missing"
        raise PrometheusError(
            f"no series is of a node here; their label {label} is {shown}, see"
            " measuredLoad.nodeLabel"
        )
    return found


def _names(nodes: Sequence[Node]) -> Mapping[str, str]:
    """What a node may be called to its name; names count before all else, and what several nodes
    are called is nobody's.
    """
    called: dict[str, set[str]] = defaultdict(set)
    for node in nodes:
        for alias in (node.labels.get(HOSTNAME, node.name), *node.internal_addresses):
            called[alias].add(node.name)
    aliases = {alias: name for alias, [name, *others] in called.items() if not others}
    return aliases | {node.name: node.name for node in nodes}


def _readings(series: Sequence[Series], start: float, end: float) -> tuple[Reading, ...]:
    """Those within the window, oldest first; `NaN` is none.

    Raises: _UnusableError.
    """
    if len(series) > 1:
        raise _UnusableError(f"{len(series)} series are of this node; aggregate them in the query")
    readings = (
        Reading(datetime.fromtimestamp(at, UTC), share)
        for at, text in series[0].values
        if start <= at <= end and not math.isnan(share := _share(text))
    )
    return tuple(sorted(readings))


def _share(text: str) -> float:
    """A share from 0 to 1, or NaN. Raises: _UnusableError."""
    share = _number(text)
    if share < -_TOLERANCE or share > 1 + _TOLERANCE:
        raise _UnusableError(
            f"{text[:_SHOWN_CHARACTERS]!r} is no share from 0 to 1; does the query give a"
            " percentage or an amount?"
        )
    return share if math.isnan(share) else min(max(share, 0.0), 1.0)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise _UnusableError(f"{text[:_SHOWN_CHARACTERS]!r} is no number") from error


def _usage(
    samples: Iterable[LatestSample], vmis: Mapping[ObjectKey, object], unit: int
) -> Mapping[ObjectKey, int]:
    """Of VMIs that have exactly one sample, rounded up as requests are."""
    found: dict[ObjectKey, list[LatestSample]] = defaultdict(list)
    for sample in samples:
        key = ObjectKey(sample.metric.get("namespace", ""), sample.metric.get("name", ""))
        if key in vmis:
            found[key].append(sample)
    amounts = {key: _amount(sample, unit) for key, [sample, *others] in found.items() if not others}
    return {key: amount for key, amount in amounts.items() if amount is not None}


def _amount(sample: LatestSample, unit: int) -> int | None:
    """None for what is no amount."""
    if sample.value is None:
        return None
    try:
        amount = _number(sample.value[1]) * unit
    except _UnusableError:
        return None
    return math.ceil(amount) if 0 <= amount <= _MOST else None
