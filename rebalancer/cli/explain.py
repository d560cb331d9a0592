"""`rebalancer explain VM`."""

from typing import Annotated

import typer

from rebalancer.cli.options import (
    ContextOption,
    FromOption,
    KubeconfigOption,
    Output,
    OutputOption,
    PolicyOption,
)
from rebalancer.cli.setup import load_setup, open_source
from rebalancer.cli.terminal import show
from rebalancer.explain import explain_vmi, find_vmi
from rebalancer.report.explanation import explanation_document, explanation_tables
from rebalancer.report.plan_json import to_json


def explain(
    vm: Annotated[
        str, typer.Argument(metavar="VM", help="NAME or NAMESPACE/NAME; pending or running.")
    ],
    policy: PolicyOption = None,
    from_: FromOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Say for every node what bars a VM from it, in numbers."""
    setup = load_setup(policy)
    snapshot = open_source(from_, kubeconfig, context, setup.policy).read()
    explanation = explain_vmi(snapshot, find_vmi(snapshot, vm), setup.context)
    if output is Output.JSON:
        typer.echo(to_json(explanation_document(explanation)))
        return
    show(explanation_tables(explanation))
