"""Child processes with a log of their own, that never outlive the process that started them."""

import ctypes
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)
_LOG_TAIL_CHARACTERS = 3000


class ComponentError(Exception):
    """A component did not come up, or ended by itself; the text ends with the tail of its log."""


class Component:
    """One program of the control plane, running."""

    def __init__(self, name: str, command: Sequence[str | Path], folder: Path) -> None:
        """Start it; its log is `folder`/`name`.log."""
        self.name = name
        self.log_file = folder / f"{name}.log"
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder,
                # A session of its own: Ctrl-C reaches us alone, and we stop them in order.
                start_new_session=True,
                preexec_fn=_die_with(os.getpid()),  # noqa: PLW1509 (two calls, no locks)
            )

    def wait_until(self, ready: Callable[[], bool], seconds: float) -> None:
        """Ask `ready` again and again until it says yes.

        Raises: ComponentError when the program has ended, or after `seconds`.
        """
        deadline = time.monotonic() + seconds
        while not ready():
            code = self._process.poll()
            if code is not None:
                raise ComponentError(f"{self.name} ended with {code}; {self._log_tail()}")
            if time.monotonic() > deadline:
                raise ComponentError(
                    f"{self.name} was not ready after {seconds:.0f} s; {self._log_tail()}"
                )
            time.sleep(0.05)

    def stop(self) -> None:
        """End it at once: nothing that it would save on the way out is ever read again."""
        self._process.kill()
        self._process.wait()

    def _log_tail(self) -> str:
        tail = self.log_file.read_text(errors="replace")[-_LOG_TAIL_CHARACTERS:]
        return f"{self.log_file} ends with:\n{tail}"


def free_ports(count: int) -> list[int]:
    """Ports of the loopback address that nobody listens on, all different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def _die_with(parent: int) -> Callable[[], None]:
    """To run in the child: ask the kernel to kill it when the thread that started it ends."""

    def before_exec() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return before_exec
