"""Builds the control plane's programs from `modules/` into a cache outside the tree.

Each module has a folder of its own in the cache, named for a hash of what it is built from, so a
changed go.mod never meets old binaries and an unchanged one is never built twice. A cold build of
all takes more than twenty minutes on two cores, most of it Kubernetes and KubeVirt.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from .toolchain import BuildError, Toolchain, find_toolchain

MODULES = Path(__file__).parent / "modules"
CONTROL_PLANE = ("certificates", "etcd", "kwok", "kubevirt", "kubernetes")
ALL = (*CONTROL_PLANE, "jaeger", "kustomize", "prometheus")

CRDS_FILE = "crds.json"
STAGES_FOLDER = "stages"

_FLAGS = ("-mod=readonly", "-trimpath", "-buildvcs=false")
_LINKER_FLAGS = "-s -w"
# Without the clients of all clouds, in which it would look for what to scrape.
_MODULE_FLAGS = {"prometheus": ("-tags=remove_all_sd",)}
_PROGRESS_SECONDS = 30


def ensure_built(modules: Sequence[str] = CONTROL_PLANE) -> dict[str, Path]:
    """The folder with the programs of each module, built now where it is missing.

    Programs are the tools of a go.mod and the module's own packages, and bear the last name of
    their package's path. `kubevirt` also holds CRDS_FILE, `kwok` also STAGES_FOLDER. Progress goes
    to stderr. Two processes may call this at once: the second waits for the first's work.

    Raises: BuildError, naming the module and ending with the tail of Go's output.
    """
    cache = _cache_folder()
    toolchain = find_toolchain(cache)
    folders = {name: cache / f"{name}-{_key(name, toolchain)}" for name in modules}
    if all(folder.exists() for folder in folders.values()):
        return folders
    with _only_builder(cache):
        missing = [name for name in modules if not folders[name].exists()]
        toolchain.ensure_installed()
        for number, name in enumerate(missing, start=1):
            _build(name, folders[name], toolchain, f"{name} ({number} of {len(missing)})")
    return folders


def _cache_folder() -> Path:
    own = os.environ.get("CONTROLPLANE_CACHE")
    if own:
        return Path(own)
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "kubevirt-rebalancer"


def _key(module: str, toolchain: Toolchain) -> str:
    digest = hashlib.sha256(repr((toolchain.version, _flags(module), _LINKER_FLAGS)).encode())
    folder = MODULES / module
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            digest.update(f"\0{path.relative_to(folder)}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _flags(module: str) -> tuple[str, ...]:
    return (*_FLAGS, *_MODULE_FLAGS.get(module, ()))


@contextmanager
def _only_builder(cache: Path) -> Iterator[None]:
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "build.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("another process is building; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(module: str, target: Path, toolchain: Toolchain, title: str) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{module}-") as scratch:
        staging = Path(scratch) / "programs"
        staging.mkdir()
        go = _Go(module, toolchain, title, Path(scratch) / "output")
        linker_flags = _LINKER_FLAGS
        if module == "kubernetes":
            # Without it /version says v0.0.0, and clients that look at the version take fright.
            version = go.run("list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes").strip()
            linker_flags += f" -X k8s.io/component-base/version.gitVersion={version}"
        started = time.monotonic()
        _say(f"building {title}")
        flags = (*_flags(module), "-ldflags", linker_flags)
        go.run("build", *flags, "-o", f"{staging}/", "tool", "./...")
        add_files = _EXTRA_FILES.get(module)
        if add_files is not None:
            add_files(go, staging)
        # The rename makes the folder appear whole or not at all.
        staging.rename(target)
        _say(f"built {title} in {time.monotonic() - started:.0f} s")


class _Go:
    """Runs the Go command in one module's folder."""

    def __init__(self, module: str, toolchain: Toolchain, title: str, output: Path) -> None:
        self._module = module
        self._toolchain = toolchain
        self._title = title
        self._output = output

    def run(self, *arguments: str) -> str:
        """Run to the end, telling on stderr that it still goes on, and return what it printed."""
        started = time.monotonic()
        with self._output.open("w+") as errors, tempfile.TemporaryFile("w+") as answer:
            process = subprocess.Popen(
                [self._toolchain.go, *arguments],
                cwd=MODULES / self._module,
                env=self._toolchain.environment(),
                stdout=answer,
                stderr=errors,
            )
            try:
                while True:
                    try:
                        code = process.wait(timeout=_PROGRESS_SECONDS)
                        break
                    except subprocess.TimeoutExpired:
                        _say(f"still building {self._title}, {time.monotonic() - started:.0f} s")
            finally:
                process.kill()
            if code != 0:
                tail = self._output.read_text()[-3000:]
                raise BuildError(
                    f"module {self._module}: go {' '.join(arguments)} ended with {code}:\n{tail}"
                )
            answer.seek(0)
            return answer.read()


def _print_crds(go: _Go, staging: Path) -> None:
    (staging / CRDS_FILE).write_text(go.run("run", *_FLAGS, "./crds"))
    (staging / "crds").unlink()


def _copy_stages(go: _Go, staging: Path) -> None:
    source = go.run("list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok").strip()
    shutil.copytree(Path(source) / "kustomize" / "stage", staging / STAGES_FOLDER)
    # The module cache is read-only, and so would the copies be.
    for path in [staging / STAGES_FOLDER, *(staging / STAGES_FOLDER).rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)


_EXTRA_FILES: dict[str, Callable[[_Go, Path], None]] = {
    "kubevirt": _print_crds,
    "kwok": _copy_stages,
}


def _say(text: str) -> None:
    print(f"control plane: {text}", file=sys.stderr, flush=True)
