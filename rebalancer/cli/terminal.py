"""Consoles: colours and the terminal's width on a terminal, plain long lines in a pipe."""

import sys
from typing import TextIO

from rich.console import Console

_PIPE_WIDTH = 200
"""Wide enough that tables with long node names are not folded where a program reads them."""


def console(stream: TextIO | None = None) -> Console:
    stream = stream or sys.stdout
    width = None if stream.isatty() else _PIPE_WIDTH
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False)
