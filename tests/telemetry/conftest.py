"""An environment without OpenTelemetry's variables, and the log of the process."""

import os
from collections.abc import Iterator

import pytest

from tests.telemetry.log_lines import LogLines, log_lines


@pytest.fixture(autouse=True)
def _no_telemetry_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("OTEL_"):
            monkeypatch.delenv(name)


@pytest.fixture
def lines() -> Iterator[LogLines]:
    with log_lines() as lines:
        yield lines
