"""`rebalancer run`."""

import typer

from rebalancer.cli import exit_codes
from rebalancer.cli.cycle import carry_out
from rebalancer.cli.options import (
    ContextOption,
    KubeconfigOption,
    Output,
    OutputOption,
    PolicyOption,
)
from rebalancer.cli.setup import load_setup, open_cluster
from rebalancer.cli.terminal import answer
from rebalancer.loop import run_cycle
from rebalancer.report.plan_json import result_document
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
    result = carry_out(run_cycle, cluster, setup.strategies, setup.context)
    answer(output, result_document(result), result_tables(result))
    if result.unmet():
        raise typer.Exit(exit_codes.GOAL_UNMET)
