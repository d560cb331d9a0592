"""`rebalancer demo`."""

import os
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from rebalancer.cli import exit_codes
from rebalancer.cli.options import PolicyOption
from rebalancer.cli.setup import load_setup, tracing
from rebalancer.cli.terminal import console, show
from rebalancer.loop import run_cycle
from rebalancer.model.objects import ObjectKey
from rebalancer.planner import make_plan
from rebalancer.report.events import EventLines
from rebalancer.report.plan_tables import plan_tables, vm_table
from rebalancer.report.rows import cell
from rebalancer.telemetry.settings import read_tracing_settings
from rebalancer.telemetry.tracing import asks_for_exporter

if TYPE_CHECKING:
    from rebalancer.cluster.simulated import SimulatedCluster

_TRACE_FILE = Path("rebalancer-demo-trace.jsonl")
_LONGEST_BOOT = timedelta(minutes=1)


def demo(
    policy: PolicyOption = None,
    speed: Annotated[
        int, typer.Option(min=1, help="Simulated seconds that pass in one real second.")
    ] = 10,
    trace_file: Annotated[
        Path | None,
        typer.Option(
            help="Where the trace goes (OTLP JSON); without it and without a collector,"
            f" {_TRACE_FILE} in this folder."
        ),
    ] = None,
) -> None:
    """Watch a 16 GiB VM get its node on a simulated cluster."""
    from rebalancer.cluster.request_scenario import request_cluster

    setup = load_setup(policy)
    trace_file = _trace_file(trace_file)
    cluster = request_cluster(pace=lambda seconds: time.sleep(seconds / speed))
    before = cluster.read()
    plan = make_plan(before, setup.strategies, setup.context)
    show([vm_table(before), Text(), *plan_tables(plan, before), Text()])
    with tracing(trace_file):
        result = run_cycle(cluster, setup.strategies, setup.context, EventLines(console()))
    _wait_until_running([outcome.vmi for outcome in result.outcomes], cluster)
    show([Text(), vm_table(cluster.read())])
    if trace_file is not None:
        show([Text(), cell(f"Trace written to {trace_file}")])
    if result.unmet():
        raise typer.Exit(exit_codes.GOAL_UNMET)


def _trace_file(chosen: Path | None) -> Path | None:
    """What was chosen, else the usual file if OpenTelemetry's variables say nothing of traces.

    None where the folder cannot be written, as in a container: the demo works all the same.
    """
    if read_tracing_settings(os.environ).is_disabled:
        return None
    if chosen is not None:
        return chosen
    names_exporter = bool(os.environ.get("OTEL_TRACES_EXPORTER", "").strip())
    if asks_for_exporter(os.environ) or names_exporter or not os.access(Path(), os.W_OK):
        return None
    return _TRACE_FILE


def _wait_until_running(vmis: Sequence[ObjectKey], cluster: "SimulatedCluster") -> None:
    """A VM that has got its node is still to boot there."""
    until = cluster.now() + _LONGEST_BOOT
    while cluster.now() < until and not _are_running(vmis, cluster):
        cluster.wait_for_change(vmis, (until - cluster.now()).total_seconds())


def _are_running(vmis: Sequence[ObjectKey], cluster: "SimulatedCluster") -> bool:
    phases = {vmi.key: vmi.phase for vmi in cluster.read().vmis}
    return all(phases.get(key) == "Running" for key in vmis)
