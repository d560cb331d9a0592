"""`rebalancer explain VM` and `rebalancer explain node NODE`."""

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
from rebalancer.cli.setup import load_setup, open_source, read_snapshot
from rebalancer.cli.terminal import answer
from rebalancer.errors import InputError
from rebalancer.explain.lookup import find_node, find_vmi
from rebalancer.explain.node import explain_node
from rebalancer.explain.vmi import explain_vmi
from rebalancer.report.explanation import explanation_document, explanation_tables
from rebalancer.report.node_explanation import node_explanation_document, node_explanation_tables


def explain(
    subject: Annotated[
        list[str],
        typer.Argument(
            metavar="VM | node NODE",
            help="A VM, pending or running, as NAME or NAMESPACE/NAME; or a node.",
        ),
    ],
    policy: PolicyOption = None,
    from_: FromOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Say what bars a VM from each node, or what keeps a node as it is, in numbers."""
    is_node = _is_node(subject)
    setup = load_setup(policy)
    snapshot = read_snapshot(open_source(from_, kubeconfig, context, setup.policy))
    if is_node:
        of_node = explain_node(snapshot, find_node(snapshot, subject[-1]), setup.context)
        answer(output, node_explanation_document(of_node), node_explanation_tables(of_node))
    else:
        of_vm = explain_vmi(snapshot, find_vmi(snapshot, subject[-1]), setup.context)
        answer(output, explanation_document(of_vm), explanation_tables(of_vm))


def _is_node(subject: list[str]) -> bool:
    match subject:
        case [_]:
            return False
        case ["node", _]:
            return True
        case _:
            raise InputError(
                f"explain {' '.join(subject)}: name one VM, or one node as: explain node NODE"
            )
