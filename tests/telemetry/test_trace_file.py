"""The file is OTLP's JSON, one document per line."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict  # type: ignore[import-untyped]
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode

from rebalancer.errors import InputError
from rebalancer.telemetry.trace_file import TraceFile

TRACE_ID = 0x000102030405060708090A0B0C0D0E0F
PLAN = SpanContext(TRACE_ID, 0x00F1, is_remote=False)
MOVE = SpanContext(TRACE_ID, 0xF2F3F4F5F6F7F8F9, is_remote=False)
SPANS = [
    ReadableSpan("plan", context=PLAN, start_time=10**18, end_time=10**18 + 2),
    ReadableSpan(
        "move",
        context=MOVE,
        parent=PLAN,
        kind=SpanKind.CLIENT,
        attributes={
            "vm": 'shop/db "0"\n\0\N{SNOWMAN}',
            "bytes": 2**40,
            "seconds": 1.5,
            "nodes": ["w1", "w2"],
        },
        events=[Event("Running", {"phase": "Running"}, timestamp=10**18 + 1)],
        links=[Link(PLAN, {"why": "waits for"})],
        status=Status(StatusCode.ERROR, "target node is gone"),
        start_time=10**18 + 1,
        end_time=10**18 + 2,
    ),
]


def write(path: Path, *batches: list[ReadableSpan]) -> list[dict[str, Any]]:
    file = TraceFile(path)
    for batch in batches:
        file.export(batch)
    file.shutdown()
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_ids_are_hex_enums_numbers_and_times_strings(tmp_path: Path) -> None:
    (document,) = write(tmp_path / "trace.jsonl", SPANS)
    plan, move = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert plan["traceId"] == "000102030405060708090a0b0c0d0e0f"
    assert plan["spanId"] == move["parentSpanId"] == move["links"][0]["spanId"]
    assert plan["spanId"] == "00000000000000f1"
    assert move["kind"] == 3
    assert move["status"] == {"code": 2, "message": "target node is gone"}
    assert move["startTimeUnixNano"] == "1000000000000000001"


def test_file_says_what_the_protocol_would_send(tmp_path: Path) -> None:
    (document,) = write(tmp_path / "trace.jsonl", SPANS)
    for span in document["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for item in (span, *span.get("links", [])):
            for field in {"traceId", "spanId", "parentSpanId"} & set(item):
                item[field] = base64.b64encode(bytes.fromhex(item[field])).decode()
    assert ParseDict(document, ExportTraceServiceRequest()) == encode_spans(SPANS)


def test_each_batch_is_a_line_of_its_own_and_an_old_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text("of yesterday\n")
    documents = write(path, SPANS[:1], SPANS[1:])
    assert [
        each["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["name"] for each in documents
    ] == [
        "plan",
        "move",
    ]


def test_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "trace.jsonl"
    with pytest.raises(InputError, match=f"^trace file {path}: No such file or directory"):
        TraceFile(path)
