"""The way of a span from where it ends to where it is sent. Imports OpenTelemetry's SDK."""

import logging
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter

from rebalancer.errors import InputError
from rebalancer.telemetry.reporting import ReportingExporter
from rebalancer.telemetry.settings import Exporter, Protocol, TracingSettings
from rebalancer.telemetry.trace_file import TraceFile

_logger = logging.getLogger("rebalancer.telemetry")

DISTRIBUTION = "kubevirt-rebalancer"

# The end of a CronJob's pod should not wait for a collector that is gone.
_FLUSH_SECONDS = 1.5
_BREAK_OFF_SECONDS = 0.5


class Pipeline:
    """A provider of tracers with its exporters; spans are sent by threads of their own.

    Raises: InputError, naming the variable or the file.
    """

    def __init__(self, settings: TracingSettings, trace_file: Path | None = None) -> None:
        # A line for each text that is cut would let one odd name fill the log.
        logging.getLogger("opentelemetry.attributes").setLevel(logging.ERROR)
        try:
            self.provider = TracerProvider(
                resource=_resource(),
                span_limits=SpanLimits(max_attribute_length=settings.longest_text_characters),
                shutdown_on_exit=False,  # it would wait for half a minute
            )
            self._exporters = _exporters(settings, trace_file)
            for exporter in self._exporters:
                self.provider.add_span_processor(BatchSpanProcessor(exporter))
        except ValueError as error:
            raise InputError(f"OpenTelemetry's variables (OTEL_...): {error}") from error

    def shut_down(self) -> None:
        """Delivers the last spans, as far as that takes no more than two seconds.

        OpenTelemetry's own shutdown would wait for the exporter's tries, for 30 seconds at most.
        """
        try:
            flushing = Thread(target=self.provider.shutdown, name="last-traces", daemon=True)
            flushing.start()
            flushing.join(_FLUSH_SECONDS)
            if not flushing.is_alive():
                return
            for exporter in self._exporters:
                exporter.shutdown()
            flushing.join(_BREAK_OFF_SECONDS)
        except Exception:
            _logger.exception("tracing was not shut down in order")


def _resource() -> Resource:
    defaults = {"service.name": DISTRIBUTION}
    with suppress(PackageNotFoundError):  # as when run from a source tree
        defaults["service.version"] = version(DISTRIBUTION)
    return Resource.create({**defaults, **OTELResourceDetector().detect().attributes})


def _exporters(settings: TracingSettings, trace_file: Path | None) -> list[ReportingExporter]:
    """The file comes first: at the end it would wait in vain behind a collector that is gone."""
    exporters = []
    if trace_file is not None:
        exporters.append(ReportingExporter(TraceFile(trace_file), str(trace_file)))
    if settings.exporter is Exporter.CONSOLE:
        exporters.append(ReportingExporter(ConsoleSpanExporter(out=sys.stderr), "the console"))
    if settings.exporter is Exporter.OTLP:
        address = urlsplit(settings.endpoint).netloc.rpartition("@")[2] or settings.endpoint
        exporter = _otlp_exporter(settings)
        exporters.append(ReportingExporter(exporter, address, settings.secrets))
    return exporters


def _otlp_exporter(settings: TracingSettings) -> SpanExporter:
    if settings.protocol is Protocol.GRPC:
        from opentelemetry.exporter.otlp.proto.grpc import trace_exporter as grpc

        return grpc.OTLPSpanExporter(endpoint=settings.endpoint)
    from opentelemetry.exporter.otlp.proto.http import trace_exporter as http

    return http.OTLPSpanExporter(endpoint=settings.endpoint)
