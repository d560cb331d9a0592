"""A process of its own: what `configure_tracing` sets up for the whole of it, and what not."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import logging, os, sys
from pathlib import Path
from opentelemetry import trace
from rebalancer.telemetry.tracing import configure_tracing

logging.basicConfig()
tracer = trace.get_tracer("rebalancer")
trace_file = Path(sys.argv[1]) if len(sys.argv) > 1 else None
shut_down = configure_tracing(os.environ, trace_file=trace_file)
configure_tracing(os.environ, trace_file=trace_file)
with tracer.start_as_current_span("cycle"):
    pass
shut_down()
shut_down()
print(*sorted(sys.modules))
"""
HEAVY = {"opentelemetry.sdk", "opentelemetry.exporter", "opentelemetry.proto", "grpc", "requests"}


def modules_after(*arguments: str, complaint: str = "", **variables: str) -> set[str]:
    """Runs the program, which must end well and say no more than that it was set up before."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("OTEL_")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env={**inherited, **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr.strip().rpartition(":")[2] == complaint
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": ""},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"},
    ],
)
def test_without_an_exporter_nothing_heavy_is_imported(variables: dict[str, str]) -> None:
    assert modules_after(**variables) & HEAVY == set()


def test_disabled_sdk_writes_no_file_either(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    assert modules_after(str(file), OTEL_SDK_DISABLED="true") & HEAVY == set()
    assert not file.exists()


def test_tracer_made_before_the_set_up_writes_to_the_file(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    already = "OpenTelemetry is set up already; traces go where that sends them"
    modules = modules_after(str(file), complaint=already)
    assert modules & {"grpc", "requests"} == set()
    (document,) = map(json.loads, file.read_text().splitlines())
    (span,) = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert span["name"] == "cycle"
