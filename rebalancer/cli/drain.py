"""`rebalancer drain`."""

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.text import Text

from rebalancer.cli import exit_codes
from rebalancer.cli.cycle import carry_out
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
from rebalancer.cli.setup import load_setup, open_cluster, open_source, read_snapshot
from rebalancer.cli.terminal import answer, show, working
from rebalancer.drain.cheapest import cheapest_to_empty
from rebalancer.drain.proposal import NAME, Drain, left_behind, propose_drains
from rebalancer.errors import InputError
from rebalancer.explain.lookup import find_node
from rebalancer.loop import run_cycles
from rebalancer.model.plan import Plan, Proposal, Verdict
from rebalancer.planner import ActiveStrategy, make_plan
from rebalancer.planning.view import View
from rebalancer.policy.model import Mode, Section
from rebalancer.report.cheapest import cheapest_document, cheapest_tables
from rebalancer.report.plan_json import plan_document, result_document
from rebalancer.report.plan_tables import plan_tables
from rebalancer.report.result_tables import result_tables
from rebalancer.strategy import Strategy


def drain(
    nodes: Annotated[
        list[str] | None, typer.Argument(metavar="NODE...", help="The nodes to empty.")
    ] = None,
    cheapest: Annotated[
        int | None,
        typer.Option(min=1, metavar="K", help="Empty the K nodes for which that costs least."),
    ] = None,
    selector: SelectorOption = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan only.")] = False,
    policy: PolicyOption = None,
    from_: FromOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Empty nodes by live migrations; with --from, show the plan. Cordoning them is up to you."""
    if bool(nodes) == (cheapest is not None):
        raise InputError("name the nodes to empty, or let --cheapest K choose them: one of the two")
    if selector and cheapest is None:
        raise InputError("--selector says what --cheapest may choose from; it cannot go alone")
    labels = parse_selector(selector)
    setup = load_setup(policy)
    is_dry_run = dry_run or from_
    cluster = None if is_dry_run else open_cluster(kubeconfig, context, setup.policy)
    source = cluster or open_source(from_, kubeconfig, context, setup.policy)
    snapshot = read_snapshot(source)
    choice = None
    if cheapest:
        with working("choosing nodes"):
            choice = cheapest_to_empty(cheapest, labels, View.of(snapshot, setup.context))
    if choice:
        names = choice.nodes
        if output is Output.TABLE:
            show([*cheapest_tables(choice), Text()])
    else:
        names = tuple(find_node(snapshot, name).name for name in dict.fromkeys(nodes or ()))
    strategies = [_drains(names)]
    if cluster:
        result = carry_out(run_cycles, cluster, strategies, setup.context)
        document, tables = result_document(result), result_tables(result)
        is_unmet = bool(result.unmet()) or _leaves_vms(result.plan)
    else:
        with working("planning"):
            plan = make_plan(snapshot, strategies, setup.context)
        document, tables = plan_document(plan), plan_tables(plan, snapshot)
        is_unmet = _leaves_vms(plan)
    answer(output, cheapest_document(choice, document) if choice else document, tables)
    if is_unmet or (choice and len(choice.nodes) < choice.wanted):
        raise typer.Exit(exit_codes.GOAL_UNMET)


def _drains(names: Sequence[str]) -> ActiveStrategy:
    """Empties just these nodes, whether they bear a sign or not, and no others."""

    def propose(view: View, _settings: Section) -> Sequence[Proposal]:
        there = [name for name in names if name in view.snapshot.node_by_name]
        drains = [Drain(name, "asked for by command") for name in there]
        return tuple(propose_drains(drains, view))

    return ActiveStrategy(Strategy(NAME, Section, propose), Mode.AUTOMATIC, Section())


def _leaves_vms(plan: Plan) -> bool:
    """Whether a VM is on one of the nodes when all moves are done."""
    return any(
        goal.verdict not in {Verdict.MET, Verdict.PLANNED} or left_behind(goal)
        for goal in plan.goals
    )
