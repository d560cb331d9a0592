"""What the commands that migrate have in common."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rebalancer.cli.setup import tracing
from rebalancer.cli.terminal import console
from rebalancer.cluster.protocols import Cluster
from rebalancer.execution.events import Listener
from rebalancer.loop import CycleResult
from rebalancer.planner import ActiveStrategy
from rebalancer.planning.context import PlanningContext
from rebalancer.report.events import EventLines

Run = Callable[
    [Cluster, Sequence[ActiveStrategy], PlanningContext, Listener, Callable[[], bool]], CycleResult
]


def carry_out(
    run: Run,
    cluster: Cluster,
    strategies: Sequence[ActiveStrategy],
    context: PlanningContext,
) -> CycleResult:
    """Runs a cycle, or several, with its events on stderr, traced, and stopped by signals."""
    with tracing(), stop_signals() as stop:
        listener = EventLines(console(sys.stderr))
        return run(cluster, strategies, context, listener, stop.is_set)


@contextmanager
def stop_signals() -> Iterator[threading.Event]:
    """An event that SIGTERM and SIGINT set, so that a cycle stops at its next step."""
    stop = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: stop.set())
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
