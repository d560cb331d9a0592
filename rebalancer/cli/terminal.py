"""Consoles: colours and the terminal's width on a terminal, plain lines of any length in a pipe."""

import sys
from collections.abc import Iterable
from typing import TextIO

from rich.console import Console, RenderableType

_PIPE_WIDTH = 1_000_000
"""Nothing is folded where a program reads it: one line for each row, however long."""


def console(stream: TextIO | None = None) -> Console:
    stream = stream or sys.stdout
    width = None if stream.isatty() else _PIPE_WIDTH
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False)


def show(parts: Iterable[RenderableType]) -> None:
    """Prints the parts on stdout, one below the other."""
    out = console()
    for part in parts:
        out.print(part)
