"""What cycles have come to, for Prometheus to collect and so to keep over time."""

from collections import Counter
from collections.abc import Iterator
from enum import StrEnum

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from rebalancer.errors import InputError
from rebalancer.loop import CycleResult


class CycleEnd(StrEnum):
    DONE = "done"
    STANDBY = "standby"
    """Another rebalancer has the Lease."""
    FAILED = "failed"


class CycleMetrics(Collector):
    """Counts from when the process started, and what the last cycle that was done has found."""

    def __init__(self) -> None:
        self._ends = Counter[CycleEnd]()
        self._migrations = Counter[str]()
        self._last: CycleResult | None = None
        self._done_at_seconds = 0.0

    def ended(self, end: CycleEnd) -> None:
        self._ends[end] += 1

    def done(self, result: CycleResult, at_seconds: float) -> None:
        """`at_seconds`: since 1970."""
        self.ended(CycleEnd.DONE)
        for outcome in result.outcomes:
            self._migrations[outcome.ending.value] += outcome.migrations
        self._last, self._done_at_seconds = result, at_seconds

    def collect(self) -> Iterator[Metric]:
        cycles = CounterMetricFamily(
            "rebalancer_cycles", "Cycles by how they ended.", labels=["end"]
        )
        for end in CycleEnd:
            cycles.add_metric([end.value], self._ends[end])
        yield cycles
        migrations = CounterMetricFamily(
            "rebalancer_migrations",
            "Migrations started, by how the goal ended that they were for.",
            labels=["ending"],
        )
        for ending, count in sorted(self._migrations.items()):
            migrations.add_metric([ending], count)
        yield migrations
        if self._last is not None:
            yield from self._of_last(self._last)

    def _of_last(self, result: CycleResult) -> Iterator[Metric]:
        yield GaugeMetricFamily(
            "rebalancer_last_cycle_timestamp_seconds",
            "When the last cycle was done.",
            value=self._done_at_seconds,
        )
        yield GaugeMetricFamily(
            "rebalancer_unmet_goals", "Goals not met in the end.", value=len(result.unmet())
        )
        goals = GaugeMetricFamily(
            "rebalancer_goals", "Goals by verdict.", labels=["strategy", "verdict"]
        )
        verdicts = Counter((goal.strategy, goal.verdict.value) for goal in result.plan.goals)
        for labels, count in sorted(verdicts.items()):
            goals.add_metric(labels, count)
        yield goals
        figures = GaugeMetricFamily(
            "rebalancer_goal_figure",
            "What was measured for a goal; docs/plan.md lists the figures.",
            labels=["strategy", "kind", "subject", "figure"],
        )
        for goal in result.plan.goals:
            for name, value in sorted(goal.figures.items()):
                figures.add_metric(
                    [goal.strategy, goal.subject.kind, str(goal.subject), name], value
                )
        yield figures


def serve_metrics(metrics: CycleMetrics, port: int) -> None:
    """Answers `GET /metrics` on all addresses, from a thread of its own, until the process ends.

    Raises: InputError if the port cannot be had.
    """
    registry = CollectorRegistry()
    registry.register(metrics)
    try:
        start_http_server(port, registry=registry)
    except OSError as error:
        raise InputError(f"--metrics-port {port}: {error.strerror}; name another") from error
