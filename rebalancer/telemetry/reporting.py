"""Says once that traces do not arrive, and once that they do again."""

import logging
import threading
import time
from collections.abc import Callable, Sequence

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from rebalancer.telemetry.sendable import sendable

_logger = logging.getLogger("rebalancer.telemetry")

QUIET_SECONDS = 600.0
"""A collector that comes and goes is told of no more often than this."""

_LONGEST_REASON_CHARACTERS = 400


class ReportingExporter(SpanExporter):
    """Another exporter, whose troubles make one line per outage and never an exception.

    From the first of these on, the log of OpenTelemetry's own exporters, which has a line for
    each try, is kept from the log of the process.
    """

    def __init__(
        self,
        exporter: SpanExporter,
        destination: str,
        secrets: Sequence[str] = (),
        monotonic_seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """`destination` is shown, and nothing that is in `secrets`."""
        self._exporter = exporter
        self._destination = destination
        self._secrets = secrets
        self._monotonic_seconds = monotonic_seconds
        self._lock = threading.Lock()
        self._under_way: Sequence[ReadableSpan] = ()
        self._messages: list[str] = []
        self._lost_spans = 0
        self._is_told = False
        self._quiet_until = float("-inf")
        self._is_shut_down = False
        _divert_exporter_log()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self._messages = _log_of_thread.messages = []
        self._under_way = spans
        try:
            result = self._exporter.export([sendable(span) for span in spans])
        except Exception as error:
            self._messages.append(f"{type(error).__name__}: {error}")
            result = SpanExportResult.FAILURE
        self._under_way = ()
        with self._lock:
            if result is SpanExportResult.SUCCESS:
                self._arrived()
            else:
                self._lost(spans)
        return result

    def shutdown(self) -> None:
        """Breaks off what is on its way, if it can be, and counts it as lost.

        A second call does nothing.
        """
        with self._lock:
            if self._is_shut_down:
                return
            self._is_shut_down = True
            if self._under_way:
                self._lost(self._under_way)
        self._exporter.shutdown()

    def _arrived(self) -> None:
        if self._is_told:
            _logger.info(
                "traces reach %s again; %d spans were lost", self._destination, self._lost_spans
            )
        self._lost_spans = 0
        self._is_told = False

    def _lost(self, spans: Sequence[ReadableSpan]) -> None:
        now = self._monotonic_seconds()
        if self._lost_spans == 0 and now >= self._quiet_until:
            self._is_told = True
            self._quiet_until = now + QUIET_SECONDS
            # The first message has the cause; those after it are of retries and giving up.
            reason = self._messages[0] if self._messages else "no answer"
            _logger.warning(
                "traces do not reach %s and are lost until they do; nothing else is affected (%s)",
                self._destination,
                self._without_secrets(reason),
            )
        self._lost_spans += len(spans)

    def _without_secrets(self, reason: str) -> str:
        for secret in self._secrets:
            reason = reason.replace(secret, "***")
        return " ".join(reason.split())[:_LONGEST_REASON_CHARACTERS]


_log_of_thread = threading.local()


class _ExporterLog(logging.Handler):
    """Keeps messages for the export that this thread is in; those outside of one are dropped."""

    def emit(self, record: logging.LogRecord) -> None:
        messages: list[str] = getattr(_log_of_thread, "messages", [])
        messages.append(record.getMessage())


_EXPORTER_LOG = _ExporterLog()


def _divert_exporter_log() -> None:
    logger = logging.getLogger("opentelemetry.exporter")
    logger.addHandler(_EXPORTER_LOG)
    logger.setLevel(logging.WARNING)
    logger.propagate = False
