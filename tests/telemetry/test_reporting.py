"""One line per outage, and no secret in it."""

import logging
from collections.abc import Sequence

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from rebalancer.telemetry.reporting import QUIET_SECONDS, ReportingExporter
from tests.telemetry.log_lines import LogLines

SPANS = [ReadableSpan("a"), ReadableSpan("b")]
# Named as the modules of OpenTelemetry's exporters are.
LIBRARY_LOG = logging.getLogger("opentelemetry.exporter.otlp.proto.test")


class ScriptedExporter(SpanExporter):
    """Does what it is told: says things in the library's log, raises, or takes the spans."""

    def __init__(self) -> None:
        self.says: list[str] = []
        self.error: Exception | None = None
        self.shutdowns = 0

    def export(self, _: Sequence[ReadableSpan]) -> SpanExportResult:
        for text in self.says:
            LIBRARY_LOG.warning(text)
        if self.error is not None:
            raise self.error
        return SpanExportResult.FAILURE if self.says else SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        LIBRARY_LOG.warning("shutting down")
        self.shutdowns += 1


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def scripted() -> ScriptedExporter:
    return ScriptedExporter()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def reporting(scripted: ScriptedExporter, clock: Clock) -> ReportingExporter:
    return ReportingExporter(scripted, "collector:4318", ("T0ken", "key=1"), clock)


def test_outage_is_told_when_it_begins_and_when_it_ends(
    reporting: ReportingExporter, scripted: ScriptedExporter, lines: LogLines
) -> None:
    scripted.says = ["connection refused", "giving up"]
    for _ in range(3):
        assert reporting.export(SPANS) is SpanExportResult.FAILURE
    (line,) = lines.take()
    assert line.startswith("traces do not reach collector:4318")
    assert line.endswith("(connection refused)")

    scripted.says = []
    for _ in range(2):
        assert reporting.export(SPANS) is SpanExportResult.SUCCESS
    assert lines.take() == ["traces reach collector:4318 again; 6 spans were lost"]


def test_collector_that_comes_and_goes_is_told_of_once_in_a_while(
    reporting: ReportingExporter, scripted: ScriptedExporter, clock: Clock, lines: LogLines
) -> None:
    def come_and_go() -> list[str]:
        for says in (["refused"], []):
            scripted.says = says
            reporting.export(SPANS)
        return lines.take()

    assert len(come_and_go()) == 2
    assert come_and_go() == []
    clock.seconds = QUIET_SECONDS
    assert len(come_and_go()) == 2


def test_exporter_that_raises_is_an_outage_like_any_other(
    reporting: ReportingExporter, scripted: ScriptedExporter, lines: LogLines
) -> None:
    scripted.error = OSError(28, "No space left on device")
    assert reporting.export(SPANS) is SpanExportResult.FAILURE
    (line,) = lines.take()
    assert line.endswith("(OSError: [Errno 28] No space left on device)")


def test_reason_shows_no_secret_and_stays_on_one_short_line(
    reporting: ReportingExporter, scripted: ScriptedExporter, lines: LogLines
) -> None:
    scripted.says = ["refused\r\nauthorization: T0ken /v1?key=1 " + "x" * 10_000]
    reporting.export(SPANS)
    (line,) = lines.take()
    assert "refused authorization: *** /v1?***" in line
    assert len(line) < 600


def test_what_the_library_says_besides_is_kept_from_the_log(
    reporting: ReportingExporter, scripted: ScriptedExporter, lines: LogLines
) -> None:
    reporting.shutdown()
    LIBRARY_LOG.error("Exporter already shutdown, ignoring batch")
    assert lines.take() == []
    reporting.shutdown()
    assert scripted.shutdowns == 1
