"""`rebalancer plan`."""

from typing import Annotated

import typer

from rebalancer.cli import exit_codes
from rebalancer.cli.options import (
    ContextOption,
    FromOption,
    KubeconfigOption,
    Output,
    OutputOption,
    PolicyOption,
)
from rebalancer.cli.setup import load_setup, open_source, read_snapshot
from rebalancer.cli.terminal import answer, working
from rebalancer.loop import CycleResult
from rebalancer.planner import make_plan
from rebalancer.report.plan_json import plan_document
from rebalancer.report.plan_tables import plan_tables


def plan(
    policy: PolicyOption = None,
    from_: FromOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TABLE,
    detailed_exitcode: Annotated[
        bool,
        typer.Option(
            "--detailed-exitcode",
            help="Exit with 3 if there are migrations to do, with 4 if a goal is not met.",
        ),
    ] = False,
) -> None:
    """Show what would be done, and change nothing."""
    setup = load_setup(policy)
    snapshot = read_snapshot(open_source(from_, kubeconfig, context, setup.policy))
    with working("planning"):
        made = make_plan(snapshot, setup.strategies, setup.context)
    answer(output, plan_document(made), plan_tables(made, snapshot))
    if detailed_exitcode:
        if made.moves:
            raise typer.Exit(exit_codes.PLAN_EXISTS)
        if CycleResult(made).unmet():
            raise typer.Exit(exit_codes.GOAL_UNMET)
