"""The `rebalancer` command as a process of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

COMMAND = (sys.executable, "-m", "rebalancer.cli.main")
NO_GRACE = {"REBALANCER_STRATEGIES__FIT_PENDING_VMS__SETTINGS__GRACE_SECONDS": "0"}
_LONGEST_SECONDS = 120


class Finished(NamedTuple):
    code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.stdout)
        return document


def environment(kubeconfig: Path | None, extra: Mapping[str, str]) -> dict[str, str]:
    """This process's, without what would trace or configure the command by accident."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "REBALANCER_"))}
    named = {"KUBECONFIG": str(kubeconfig)} if kubeconfig else {}
    return {**inherited, **NO_GRACE, **named, **extra}


def rebalancer(
    *arguments: str, kubeconfig: Path | None = None, env: Mapping[str, str] | None = None
) -> Finished:
    """Runs the command to its end."""
    done = subprocess.run(
        [*COMMAND, *arguments],
        env=environment(kubeconfig, env or {}),
        capture_output=True,
        text=True,
        timeout=_LONGEST_SECONDS,
        check=False,
    )
    return Finished(done.returncode, done.stdout, done.stderr)


def start(
    arguments: Sequence[str], kubeconfig: Path, env: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """Starts the command; the caller ends it."""
    return subprocess.Popen(
        [*COMMAND, *arguments],
        env=environment(kubeconfig, env or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
