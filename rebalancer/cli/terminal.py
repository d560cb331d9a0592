"""Consoles: colours and the terminal's width on a terminal, plain lines of any length in a pipe."""

import sys
from collections.abc import Iterable
from typing import Any, TextIO

import typer
from rich.console import Console, RenderableType
from rich.status import Status

from rebalancer.cli.options import Output
from rebalancer.report.plan_json import to_json

_PIPE_WIDTH = 1_000_000
"""Nothing is folded where a program reads it: one line for each row, however long."""


def console(stream: TextIO | None = None) -> Console:
    stream = stream or sys.stdout
    width = None if stream.isatty() else _PIPE_WIDTH
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False)


def working(what: str) -> Status:
    """While it is entered, a terminal's stderr says what is done; nothing is said in a pipe."""
    return console(sys.stderr).status(f"{what} ...")


def show(parts: Iterable[RenderableType]) -> None:
    """Prints the parts on stdout, one below the other."""
    out = console()
    for part in parts:
        out.print(part)


def answer(output: Output, document: dict[str, Any], tables: Iterable[RenderableType]) -> None:
    """Prints on stdout what the user has asked for: JSON, or tables."""
    if output is Output.JSON:
        typer.echo(to_json(document))
    else:
        show(tables)
