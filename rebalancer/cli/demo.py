"""`rebalancer demo`."""

import os
import time
from pathlib import Path
from typing import Annotated

import typer

from rebalancer.cli import exit_codes
from rebalancer.cli.options import PolicyOption
from rebalancer.cli.setup import load_setup, tracing
from rebalancer.cli.terminal import console
from rebalancer.loop import run_cycle
from rebalancer.planner import make_plan
from rebalancer.report.events import EventLines
from rebalancer.report.plan_tables import plan_tables, vm_table
from rebalancer.telemetry.tracing import asks_for_exporter


def demo(
    policy: PolicyOption = None,
    speed: Annotated[
        float, typer.Option(min=0.1, help="Simulated seconds that pass in one real second.")
    ] = 10.0,
    trace_file: Annotated[
        Path, typer.Option(help="Where the trace goes when no collector is set (OTLP JSON).")
    ] = Path("rebalancer-demo-trace.jsonl"),
) -> None:
    """Watch a 16 GiB VM get its node on a simulated cluster of seven nodes."""
    from rebalancer.cluster.request_scenario import request_cluster

    setup = load_setup(policy)
    out = console()
    cluster = request_cluster(pace=lambda seconds: time.sleep(seconds / speed))
    before = cluster.read()
    out.print(vm_table(before))
    out.print()
    for part in plan_tables(make_plan(before, setup.strategies, setup.context), before):
        out.print(part)
    out.print()
    has_collector = asks_for_exporter(os.environ)
    with tracing(None if has_collector else trace_file):
        result = run_cycle(cluster, setup.strategies, setup.context, EventLines(out))
    cluster.wait_for_change([outcome.vmi for outcome in result.outcomes], 60)
    out.print()
    out.print(vm_table(cluster.read()))
    if not has_collector:
        out.print(f"\nTrace written to {trace_file}")
    if result.unmet():
        raise typer.Exit(exit_codes.GOAL_UNMET)
