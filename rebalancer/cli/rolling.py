"""`rebalancer rolling`."""

import sys

import typer

from rebalancer.cli import exit_codes
from rebalancer.cli.options import (
    ContextOption,
    FromOption,
    KubeconfigOption,
    Output,
    OutputOption,
    PolicyOption,
    SelectorOption,
    parse_selector,
)
from rebalancer.cli.setup import load_setup, open_source, read_snapshot
from rebalancer.cli.terminal import answer, console
from rebalancer.drain.pool import pool_of
from rebalancer.drain.rolling import Rolling, rolling_turns
from rebalancer.planning.view import View
from rebalancer.report.rolling import progress_line, rolling_document, rolling_tables


def rolling(
    selector: SelectorOption = "",
    policy: PolicyOption = None,
    from_: FromOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Say whether the nodes can be emptied one after the other, and where that would get stuck."""
    labels = parse_selector(selector)
    setup = load_setup(policy)
    snapshot = read_snapshot(open_source(from_, kubeconfig, context, setup.policy))
    names, left_out = pool_of(snapshot, labels)
    view = View.of(snapshot, setup.context)
    progress = console(sys.stderr)
    turns = []
    for turn in rolling_turns(names, view):
        turns.append(turn)
        progress.print(progress_line(turn, len(turns), len(names)), soft_wrap=True)
    found = Rolling(tuple(turns), left_out)
    answer(output, rolling_document(found), rolling_tables(found))
    if found.stuck:
        raise typer.Exit(exit_codes.GOAL_UNMET)
