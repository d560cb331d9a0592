"""What commands print on a terminal."""

import sys
from pathlib import Path

import pytest

from tests.cli import dumps
from tests.cli.command import Cli
from tests.report.rendering import TerminalStream


class Screen:
    """Runs commands on a terminal, and tells what came to stdout."""

    def __init__(self, cli: Cli, columns: int) -> None:
        self.cli = cli
        cli.monkeypatch.setenv("TERM", "xterm")
        cli.monkeypatch.setenv("COLUMNS", str(columns))

    def __call__(self, *arguments: str | Path) -> str:
        stream, self.errors = TerminalStream(), TerminalStream()
        self.cli.monkeypatch.setattr(sys, "stdout", stream)
        self.cli.monkeypatch.setattr(sys, "stderr", self.errors)
        self.cli(*arguments)
        return stream.getvalue()


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    return dumps.one_move_away(tmp_path / "dump.json")


def test_terminal_gets_colours(cli: Cli, dump: Path) -> None:
    assert "\x1b[1;32mplanned\x1b[0m" in Screen(cli, 100)("plan", "--from", dump)
    assert "\x1b[31mno\x1b[0m" in Screen(cli, 100)("explain", "big", "--from", dump)
    screen = Screen(cli, 100)
    screen("plan", "--from", "nowhere")
    assert "\x1b[31merror: nowhere" in screen.errors.getvalue()


def test_no_color_is_obeyed(cli: Cli, dump: Path) -> None:
    cli.monkeypatch.setenv("NO_COLOR", "1")
    screen = Screen(cli, 100)
    assert "[31m" not in screen("plan", "--from", dump)
    screen("plan", "--from", "nowhere")
    assert "error: nowhere" in screen.errors.getvalue()
    assert "[31m" not in screen.errors.getvalue()


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(cli: Cli, dump: Path, columns: int) -> None:
    cli.monkeypatch.setenv("NO_COLOR", "1")
    screen = Screen(cli, columns)
    shown = screen("plan", "--from", dump) + screen("explain", "big", "--from", dump)
    plain = shown.replace("\x1b[1m", "").replace("\x1b[0m", "")
    assert max(map(len, plain.splitlines())) <= columns


def test_json_has_no_colours_on_a_terminal_either(cli: Cli, dump: Path) -> None:
    assert "\x1b" not in Screen(cli, 60)("plan", "--from", dump, "-o", "json")


def test_a_terminal_is_told_what_takes_long(cli: Cli, dump: Path) -> None:
    screen = Screen(cli, 60)
    screen("plan", "--from", dump)
    errors = screen.errors.getvalue()
    assert errors.index("reading ...") < errors.index("planning ...")


def test_a_pipe_gets_nothing_but_the_answer(cli: Cli, dump: Path) -> None:
    assert cli("plan", "--from", dump).stderr == ""
