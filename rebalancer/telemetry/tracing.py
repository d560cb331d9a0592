"""Sets OpenTelemetry up, if something is to come of it.

Until then `opentelemetry.trace.get_tracer` hands out tracers that do nothing, and neither the SDK
nor an exporter is imported.
"""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from opentelemetry import trace

from rebalancer.telemetry.settings import Exporter, read_tracing_settings

_logger = logging.getLogger("rebalancer.telemetry")


def configure_tracing(
    environ: Mapping[str, str], *, trace_file: Path | None = None
) -> Callable[[], None]:
    """Sends the spans of this process where the standard variables want them.

    `environ` must be the environment of the process: certificates, headers, time-outs, the
    sampler and the like are read there by OpenTelemetry itself. `trace_file` is written besides
    whatever the variables ask for; `asks_for_exporter` tells whether they ask for anything.
    The console exporter writes to stderr, as stdout belongs to the results of commands.

    A process can be set up once; where somebody did already (opentelemetry-instrument), that
    stays and this does nothing.

    Returns: what delivers the last spans and stops; it takes two seconds at most, whatever the
    collector does, and raises nothing.
    Raises: InputError, naming the variable or the file.
    """
    settings = read_tracing_settings(environ)
    if settings.is_disabled or (settings.exporter is Exporter.NONE and trace_file is None):
        return _do_nothing
    if not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        _logger.warning("OpenTelemetry is set up already; traces go where that sends them")
        return _do_nothing
    from rebalancer.telemetry.pipeline import Pipeline

    pipeline = Pipeline(settings, trace_file)
    trace.set_tracer_provider(pipeline.provider)
    return pipeline.shut_down


def asks_for_exporter(environ: Mapping[str, str]) -> bool:
    """Whether the standard variables send traces anywhere.

    Raises: InputError, as `configure_tracing`.
    """
    settings = read_tracing_settings(environ)
    return not settings.is_disabled and settings.exporter is not Exporter.NONE


def _do_nothing() -> None:
    pass
