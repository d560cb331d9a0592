"""`rebalancer run`."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from rebalancer.cli import exit_codes
from rebalancer.cli.options import (
    ContextOption,
    KubeconfigOption,
    Output,
    OutputOption,
    PolicyOption,
)
from rebalancer.cli.setup import load_setup, open_cluster, tracing
from rebalancer.cli.terminal import console, show
from rebalancer.loop import run_cycle
from rebalancer.report.events import EventLines
from rebalancer.report.plan_json import result_document, to_json
from rebalancer.report.result_tables import result_tables


def run(
    policy: PolicyOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Run one cycle: plan, migrate, and see each VM to its node."""
    setup = load_setup(policy)
    cluster = open_cluster(kubeconfig, context, setup.policy)
    with tracing(), stop_signals() as stop:
        listener = EventLines(console(sys.stderr))
        result = run_cycle(cluster, setup.strategies, setup.context, listener, stop.is_set)
    if output is Output.JSON:
        typer.echo(to_json(result_document(result)))
    else:
        show(result_tables(result))
    if result.unmet():
        raise typer.Exit(exit_codes.GOAL_UNMET)


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
