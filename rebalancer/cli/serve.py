"""`rebalancer serve`."""

import sys
from datetime import datetime
from typing import TYPE_CHECKING

from rebalancer.cli.options import ContextOption, KubeconfigOption, PolicyOption
from rebalancer.cli.run import stop_signals
from rebalancer.cli.setup import load_setup, open_cluster, tracing
from rebalancer.cli.terminal import console
from rebalancer.errors import RebalancerError
from rebalancer.execution.events import Event
from rebalancer.loop import run_cycle
from rebalancer.policy.model import SchedulePolicy
from rebalancer.report.events import EventLines

if TYPE_CHECKING:
    from apscheduler.triggers.base import BaseTrigger


def serve(
    policy: PolicyOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
) -> None:
    """Run cycles for ever, as the policy's schedule says."""
    from apscheduler.schedulers.background import BackgroundScheduler

    setup = load_setup(policy)
    cluster = open_cluster(kubeconfig, context, setup.policy)
    listener = EventLines(console(sys.stderr))

    with tracing(), stop_signals() as stop:

        def cycle() -> None:
            try:
                run_cycle(cluster, setup.strategies, setup.context, listener, stop.is_set)
            except RebalancerError as error:
                # The next cycle starts from a fresh reading, so a fault of this one is only told.
                listener(Event(cluster.now(), "failed", "cycle", str(error)))

        # One cycle at a time; starts that were missed meanwhile are made up for by a single one.
        scheduler = BackgroundScheduler(
            job_defaults={"max_instances": 1, "coalesce": True, "misfire_grace_time": None}
        )
        scheduler.add_job(
            cycle, trigger(setup.policy.schedule), next_run_time=datetime.now().astimezone()
        )
        scheduler.start()
        stop.wait()
        listener(Event(cluster.now(), "stopping", "serve", "waits for the present step to end"))
        scheduler.shutdown(wait=True)


def trigger(schedule: SchedulePolicy) -> "BaseTrigger":
    """When cycles start: by cron fields if there are any, else at an interval."""
    from apscheduler.triggers.cron import CronTrigger
    from apscheduler.triggers.interval import IntervalTrigger

    if schedule.cron is None:
        return IntervalTrigger(
            seconds=schedule.interval_seconds, jitter=schedule.jitter_seconds or None
        )
    cron = CronTrigger.from_crontab(schedule.cron, timezone=schedule.time_zone)
    cron.jitter = schedule.jitter_seconds or None
    return cron
