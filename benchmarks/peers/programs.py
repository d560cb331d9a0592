"""The peers: how each is had, and the command that runs it on an instance.

Nothing is put into the source tree: what has to be built or installed goes to the cache folder.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.controlplane.toolchain import BuildError, find_toolchain

_HERE = Path(__file__).parent
_PROXLB_SOLVER = "proxlb-solver==0.1.1"
_DESCHEDULER_VERSION = "0.36.0"
"""As in descheduler/go.mod."""

Command = Callable[[Path, int], list[str]]
"""From the instance's file and a limit in seconds to a command line."""


class UnavailableError(Exception):
    """A peer cannot be had here, and why."""


class Program(NamedTuple):
    """A peer that is not had yet."""

    name: str
    prepare: Callable[[], Command]
    """Raises: UnavailableError."""


def _cache() -> Path:
    own = os.environ.get("CONTROLPLANE_CACHE")
    folder = Path(own) if own else Path.home() / ".cache" / "kubevirt-rebalancer"
    return folder / "benchmarks"


def _run(
    command: Sequence[str], folder: Path | None = None, env: Mapping[str, str] | None = None
) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder, env=env)
    except FileNotFoundError as error:
        raise UnavailableError(f"{command[0]} is not installed") from error
    except subprocess.CalledProcessError as error:
        told = (error.stdout + error.stderr)[-500:]
        raise UnavailableError(f"`{' '.join(command)}` failed: {told}") from error


def descheduler() -> Path:
    """The Kubernetes descheduler's own program, from its Go module.

    Raises: UnavailableError.
    """
    program = _cache() / f"descheduler-{_DESCHEDULER_VERSION}" / "descheduler"
    if program.exists():
        return program
    toolchain = find_toolchain(_cache().parent)
    try:
        toolchain.ensure_installed()
    except BuildError as error:
        raise UnavailableError(str(error)) from error
    partial = program.with_name("descheduler.partial")
    command = [str(toolchain.go), "build", "-mod=readonly", "-trimpath", "-o", str(partial)]
    command.append("sigs.k8s.io/descheduler/cmd/descheduler")
    _run(command, _HERE / "descheduler", toolchain.environment())
    partial.rename(program)
    return program


def _btrplace() -> Command:
    folder = _cache() / "btrplace"
    source = _HERE / "btrplace"
    libraries = folder / "libraries"
    if not libraries.is_dir():
        partial = folder / "libraries.partial"
        _run(
            [
                *("mvn", "-q", "-B", "-f", str(source / "pom.xml")),
                *("dependency:copy-dependencies", f"-DoutputDirectory={partial}"),
            ]
        )
        partial.rename(libraries)
    class_path = f"{folder}{os.pathsep}{libraries}/*"
    _run(["javac", "-cp", class_path, "-d", str(folder), str(source / "FitDriver.java")])
    return lambda file, limit: ["java", "-cp", class_path, "FitDriver", str(file), str(limit)]


def _proxlb_solver() -> Command:
    folder = _cache() / _PROXLB_SOLVER.replace("==", "-")
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        _run([sys.executable, "-m", "venv", "--clear", str(folder)])
        _run([str(python), "-m", "pip", "install", "-q", _PROXLB_SOLVER])
        (folder / "complete").touch()
    return lambda file, limit: [
        *(str(python), str(_HERE / "proxlb_driver.py"), str(file), str(limit))
    ]


def _hbal() -> Command:
    if shutil.which("hbal") is None:
        raise UnavailableError("hbal is not installed; it is in Debian's package ganeti-htools")
    return lambda file, limit: [
        sys.executable,
        str(_HERE / "hbal_driver.py"),
        str(file),
        str(limit),
    ]


def _greedy() -> Command:
    return lambda file, _: [sys.executable, str(_HERE / "greedy_driver.py"), str(file)]


PROGRAMS = (
    Program("BtrPlace 1.9.3", _btrplace),
    Program("proxlb-solver 0.1.1", _proxlb_solver),
    Program("greedy", _greedy),
    Program("hbal", _hbal),
)
