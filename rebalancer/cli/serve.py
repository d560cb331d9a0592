"""`rebalancer serve`."""

import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from threading import Event as Flag
from typing import TYPE_CHECKING, Annotated

import typer

from rebalancer.cli.cycle import stop_signals
from rebalancer.cli.options import ContextOption, KubeconfigOption, PolicyOption
from rebalancer.cli.setup import load_setup, open_cluster, tracing
from rebalancer.cli.terminal import console
from rebalancer.errors import NotLeaderError, RebalancerError
from rebalancer.execution.events import Event
from rebalancer.loop import run_cycle
from rebalancer.policy.model import SchedulePolicy
from rebalancer.report.events import EventLines

if TYPE_CHECKING:
    from apscheduler.triggers.base import BaseTrigger

_logger = logging.getLogger("rebalancer.serve")

_INSTANT = timedelta(microseconds=1)


def serve(
    policy: PolicyOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=65535,
            envvar="REBALANCER_METRICS_PORT",
            help="Serve metrics for Prometheus on this port; without one, none are served.",
        ),
    ] = None,
) -> None:
    """Run cycles for ever, as the policy's schedule says."""
    from rebalancer.telemetry.metrics import CycleEnd, CycleMetrics, serve_metrics

    setup = load_setup(policy)
    cluster = open_cluster(kubeconfig, context, setup.policy)
    listener = EventLines(console(sys.stderr))
    metrics = CycleMetrics()
    if metrics_port is not None:
        serve_metrics(metrics, metrics_port)

    with tracing(), stop_signals() as stop:

        def cycle() -> None:
            try:
                result = run_cycle(cluster, setup.strategies, setup.context, listener, stop.is_set)
                metrics.done(result, cluster.now().timestamp())
            except NotLeaderError as error:
                metrics.ended(CycleEnd.STANDBY)
                listener(Event(cluster.now(), "standby", "cycle", str(error)))
            except RebalancerError as error:
                metrics.ended(CycleEnd.FAILED)
                # The next cycle starts from a fresh reading, so a fault of this one is only told.
                listener(Event(cluster.now(), "failed", "cycle", str(error)))
            except Exception as error:
                metrics.ended(CycleEnd.FAILED)
                # So is a bug, in a strategy of somebody else's perhaps; whoever mends it needs all.
                listener(Event(cluster.now(), "failed", "cycle", repr(error)))
                _logger.exception("unexpected error in a cycle")

        run_on_schedule(cycle, setup.policy.schedule, stop, lambda: datetime.now(UTC))
        listener(Event(cluster.now(), "stopped", "serve", "was told to stop"))


def run_on_schedule(
    cycle: Callable[[], None], schedule: SchedulePolicy, stop: Flag, now: Callable[[], datetime]
) -> None:
    """Runs a cycle at each time of the schedule until it is told to stop.

    Times that come while a cycle runs are left out: the next one sees whatever they would have.
    """
    start = now()
    times = trigger(schedule, start)
    due = times.get_next_fire_time(None, start)
    while not stop.wait((due - now()).total_seconds()):
        cycle()
        # A clock that was set back meanwhile must not bring the same time again.
        due = times.get_next_fire_time(None, max(now(), due) + _INSTANT)


def trigger(schedule: SchedulePolicy, start: datetime) -> "BaseTrigger":
    """When cycles start: by cron fields if there are any, else at an interval from `start` on."""
    from apscheduler.triggers.cron import CronTrigger
    from apscheduler.triggers.interval import IntervalTrigger

    jitter_seconds = schedule.jitter_seconds or None
    if schedule.cron is None:
        return IntervalTrigger(
            seconds=schedule.interval_seconds, start_date=start, jitter=jitter_seconds
        )
    cron = CronTrigger.from_crontab(schedule.cron, timezone=schedule.time_zone)
    cron.jitter = jitter_seconds
    return cron
