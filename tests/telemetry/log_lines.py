"""What reaches the log of the process."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager


class LogLines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self._lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        # The tests' control plane, if it runs, talks HTTP in threads of its own.
        if record.name not in {"httpx", "httpcore"}:
            self._lines.append(record.getMessage())

    def take(self) -> list[str]:
        """Those since the last call."""
        lines, self._lines = self._lines, []
        return lines


@contextmanager
def log_lines() -> Iterator[LogLines]:
    """All from INFO up. pytest's caplog would show also what loggers keep from the root."""
    root = logging.getLogger()
    level = root.level
    handler = LogLines()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        yield handler
    finally:
        root.setLevel(level)
        root.removeHandler(handler)
