"""Options that several commands share."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


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
