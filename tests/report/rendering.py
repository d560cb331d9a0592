"""What the reports look like where people and programs read them."""

import re
from collections.abc import Iterable
from io import StringIO

import pytest
from rich.console import RenderableType

from rebalancer.cli.terminal import console

_RICH_VARIABLES = ("NO_COLOR", "FORCE_COLOR", "COLORTERM", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class TerminalStream(StringIO):
    def isatty(self) -> bool:
        return True


def piped(parts: Iterable[RenderableType]) -> str:
    stream = StringIO()
    out = console(stream)
    for part in parts:
        out.print(part)
    return stream.getvalue()


class Terminal:
    """A terminal with sixteen colours."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
        for variable in _RICH_VARIABLES:
            monkeypatch.delenv(variable, raising=False)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", str(columns))

    def show(self, parts: Iterable[RenderableType]) -> str:
        """What is sent to it, colours included."""
        stream = TerminalStream()
        out = console(stream)
        for part in parts:
            out.print(part)
        return stream.getvalue()

    def text(self, parts: Iterable[RenderableType]) -> str:
        """What is to be read on it."""
        return _COLOUR.sub("", self.show(parts))
