"""Options that several commands share."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rebalancer.errors import InputError


class Output(StrEnum):
    TABLE = "table"
    JSON = "json"


PolicyOption = Annotated[
    Path | None,
    typer.Option(
        "--policy", "-p", envvar="REBALANCER_POLICY", help="Policy file; without one, defaults."
    ),
]
FromOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--from",
        metavar="PATH",
        help="Read files instead of a cluster: kubectl lists, folders, must-gather; - for stdin."
        " May be given several times.",
    ),
]
KubeconfigOption = Annotated[
    Path | None, typer.Option(help="Kubeconfig file; without one, as kubectl finds it.")
]
ContextOption = Annotated[str | None, typer.Option(help="Context of the kubeconfig.")]
OutputOption = Annotated[
    Output, typer.Option("--output", "-o", help="Tables for people or JSON for programs.")
]
SelectorOption = Annotated[
    str,
    typer.Option(
        "--selector",
        "-l",
        metavar="KEY=VALUE",
        help="Only nodes with this label, or with all of several, separated by commas.",
    ),
]


def parse_selector(text: str) -> Mapping[str, str]:
    """Label to value; none for an empty text.

    Raises: InputError.
    """
    labels: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key or labels.setdefault(key, value) != value:
            raise InputError(f"--selector {text}: must be KEY=VALUE, each key once, as in zone=a")
    return labels
