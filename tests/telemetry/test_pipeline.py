"""Spans arrive at a collector, and one that is gone holds nobody up."""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from rebalancer.errors import InputError
from rebalancer.telemetry.pipeline import Pipeline
from rebalancer.telemetry.settings import read_tracing_settings
from tests.telemetry.log_lines import LogLines
from tests.telemetry.receivers import (
    closed_endpoint,
    grpc_collector,
    http_collector,
    silent_endpoint,
)

COLLECTORS = {"http/protobuf": http_collector, "grpc": grpc_collector}

SetVariables = Callable[..., None]

# The pipeline promises two seconds; the library left to itself would take the time-out's sixty.
LONGEST_SECONDS = 20


@pytest.fixture
def set_variables(monkeypatch: pytest.MonkeyPatch) -> SetVariables:
    def set_them(**variables: str) -> None:
        for name, value in variables.items():
            monkeypatch.setenv(f"OTEL_{name}", value)

    return set_them


@pytest.fixture(params=COLLECTORS)
def protocol(request: pytest.FixtureRequest, set_variables: SetVariables) -> str:
    set_variables(EXPORTER_OTLP_PROTOCOL=request.param)
    return str(request.param)


@contextmanager
def pipeline(trace_file: Path | None = None) -> Iterator[Pipeline]:
    pipeline = Pipeline(read_tracing_settings(os.environ), trace_file)
    try:
        yield pipeline
    finally:
        pipeline.shut_down()


def make_spans(tracing: Pipeline, attributes: Mapping[str, str]) -> None:
    tracer = tracing.provider.get_tracer("rebalancer")
    with (
        tracer.start_as_current_span("plan"),
        tracer.start_as_current_span("move", attributes=attributes),
    ):
        pass


def send_spans(**attributes: str) -> None:
    """Returns when they are there, or cannot be delivered, however slow the machine."""
    with pipeline() as tracing:
        make_spans(tracing, attributes)
        tracing.provider.force_flush()


def end_with_spans_left(trace_file: Path | None = None) -> None:
    with pipeline(trace_file) as tracing:
        make_spans(tracing, {})


def test_collector_gets_the_spans_the_service_and_the_headers(
    protocol: str, set_variables: SetVariables
) -> None:
    with COLLECTORS[protocol]() as collector:
        set_variables(
            EXPORTER_OTLP_ENDPOINT=collector.endpoint,
            EXPORTER_OTLP_HEADERS="authorization=Bearer%20T0ken",
        )
        send_spans(vmi="shop/db-0")

    move, plan = collector.spans()
    assert (move.name, plan.name) == ("move", "plan")
    assert move.parent_span_id == plan.span_id
    assert move.attributes[0].value.string_value == "shop/db-0"
    assert collector.headers["authorization"] == "Bearer T0ken"
    assert collector.resource()["service.name"] == "kubevirt-rebalancer"
    assert collector.resource()["service.version"]


def test_service_name_and_attributes_come_from_the_variables(set_variables: SetVariables) -> None:
    with http_collector() as collector:
        set_variables(
            EXPORTER_OTLP_TRACES_ENDPOINT=f"{collector.endpoint}/in",
            SERVICE_NAME="rebalancer-east",
            RESOURCE_ATTRIBUTES="service.version=7,k8s.pod.name=rebalancer-0",
        )
        send_spans()

    resource = collector.resource()
    assert resource["service.name"] == "rebalancer-east"
    assert resource["service.version"] == "7"
    assert resource["k8s.pod.name"] == "rebalancer-0"
    assert collector.path == "/in"


def test_hostile_texts_arrive_cut_and_readable(
    protocol: str, set_variables: SetVariables, lines: LogLines
) -> None:
    with COLLECTORS[protocol]() as collector:
        set_variables(EXPORTER_OTLP_ENDPOINT=collector.endpoint)
        send_spans(huge="x" * 2_000_000, odd="\0\x1b[31m\ud800")

    values = {each.key: each.value.string_value for each in collector.spans()[0].attributes}
    assert values == {"huge": "x" * 4096, "odd": "\0\x1b[31m?"}
    assert lines.take() == []


@pytest.mark.parametrize(
    "variable", ["ATTRIBUTE_VALUE_LENGTH_LIMIT", "SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT"]
)
def test_length_limit_of_a_variable_wins(variable: str, set_variables: SetVariables) -> None:
    with http_collector() as collector:
        set_variables(**{"EXPORTER_OTLP_ENDPOINT": collector.endpoint, variable: "10000"})
        send_spans(long="x" * 20_000)

    assert len(collector.spans()[0].attributes[0].value.string_value) == 10_000


@pytest.mark.usefixtures("protocol")
def test_refused_connections_end_in_time_with_one_line_and_the_file_is_whole(
    set_variables: SetVariables, lines: LogLines, tmp_path: Path
) -> None:
    endpoint = closed_endpoint()
    set_variables(
        EXPORTER_OTLP_ENDPOINT=endpoint,
        EXPORTER_OTLP_HEADERS="authorization=Bearer%20T0ken",
        EXPORTER_OTLP_TIMEOUT="60",
    )
    file = tmp_path / "trace.jsonl"

    started = time.monotonic()
    end_with_spans_left(file)

    assert time.monotonic() - started < LONGEST_SECONDS
    (line,) = lines.take()
    assert line.startswith(f"traces do not reach {endpoint.removeprefix('http://')} ")
    assert "refused" in line
    assert "T0ken" not in line
    assert len(json.loads(file.read_text())["resourceSpans"][0]["scopeSpans"][0]["spans"]) == 2


@pytest.mark.usefixtures("protocol")
def test_collector_that_never_answers_ends_in_time_with_one_line(
    set_variables: SetVariables, lines: LogLines
) -> None:
    with silent_endpoint() as endpoint:
        set_variables(EXPORTER_OTLP_ENDPOINT=endpoint, EXPORTER_OTLP_TIMEOUT="60")

        started = time.monotonic()
        end_with_spans_left()

        assert time.monotonic() - started < LONGEST_SECONDS
        (line,) = lines.take()
        assert line.endswith("(no answer)")


def test_collector_that_refuses_the_credentials_is_told_of_with_its_answer(
    set_variables: SetVariables, lines: LogLines
) -> None:
    with http_collector() as collector:
        collector.status = 401
        set_variables(EXPORTER_OTLP_ENDPOINT=collector.endpoint)
        send_spans()

    (line,) = lines.take()
    assert "401" in line
    assert "Unauthorized" in line


def test_console_spans_leave_stdout_to_results(
    set_variables: SetVariables, capsys: pytest.CaptureFixture[str]
) -> None:
    set_variables(TRACES_EXPORTER="console")
    send_spans()

    captured = capsys.readouterr()
    assert captured.out == ""
    assert '"name": "plan"' in captured.err


def test_limit_that_is_no_number_is_bad_input(set_variables: SetVariables) -> None:
    set_variables(TRACES_EXPORTER="console", SPAN_EVENT_COUNT_LIMIT="many")
    with pytest.raises(InputError, match="OTEL_SPAN_EVENT_COUNT_LIMIT must be"):
        send_spans()


def test_second_shutdown_does_nothing(lines: LogLines, tmp_path: Path) -> None:
    with pipeline(tmp_path / "trace.jsonl") as tracing:
        tracing.shut_down()
    assert lines.take() == []
