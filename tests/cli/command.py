"""The `rebalancer` command: in this process with its clusters replaced, or as one of its own."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from rebalancer.cli.main import main

_LONGEST_SECONDS = 120
_PREFIXES = ("REBALANCER_", "OTEL_", "KUBE")
_RICH_VARIABLES = ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "COLUMNS")


class Finished(NamedTuple):
    code: int
    stdout: str
    stderr: str


def outside_variables() -> list[str]:
    """What this process has that would configure the command by accident."""
    return [v for v in os.environ if v.startswith(_PREFIXES) or v in _RICH_VARIABLES]


class Cli:
    """Runs the command in an empty folder, which is HOME too."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path
    ) -> None:
        self.monkeypatch = monkeypatch
        self.capsys = capsys
        monkeypatch.chdir(folder)
        monkeypatch.setenv("HOME", str(folder))
        for variable in outside_variables():
            monkeypatch.delenv(variable)

    def __call__(self, *arguments: str | Path) -> Finished:
        self.monkeypatch.setattr(sys, "argv", ["rebalancer", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        captured = self.capsys.readouterr()
        code = end.value.code or 0
        assert isinstance(code, int)
        return Finished(code, captured.out, captured.err)


def environment(folder: Path, extra: Mapping[str, str]) -> dict[str, str]:
    inherited = {k: v for k, v in os.environ.items() if k not in outside_variables()}
    return {**inherited, "HOME": str(folder), **extra}


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "rebalancer.cli.main", *map(str, arguments)]


def run_in(
    folder: Path,
    *arguments: str | Path,
    env: Mapping[str, str] | None = None,
    stdin: str = "",
) -> Finished:
    """Runs the command as a process of its own, with its output in pipes."""
    done = subprocess.run(
        command(*arguments),
        cwd=folder,
        env=environment(folder, env or {}),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=_LONGEST_SECONDS,
        check=False,
    )
    return Finished(done.returncode, done.stdout, done.stderr)


def assert_error(done: Finished, code: int, *says: str) -> None:
    """It ended so, told why on stderr alone, and showed no traceback."""
    assert done.code == code, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    for words in says:
        assert words in done.stderr
