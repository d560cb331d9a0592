"""Traces to a file in OTLP's JSON, which Jaeger's page takes as an upload.

Format: opentelemetry.io/docs/specs/otel/protocol/file-exporter, one document per line, and
opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding, ids in hex and enums as numbers.
"""

import base64
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from rebalancer.errors import InputError

_ID_FIELDS = ("traceId", "spanId", "parentSpanId")


class TraceFile(SpanExporter):
    """Writes each batch of spans as one line; what the file held before is gone.

    Raises: InputError if the file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._file = path.open("w", encoding="utf-8")
        except OSError as error:
            raise InputError(f"trace file {path}: {error.strerror}; choose another") from error

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Raises: OSError if there is no room or no file any more."""
        self._file.write(otlp_json(spans) + "\n")
        self._file.flush()
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        self._file.close()


def otlp_json(spans: Sequence[ReadableSpan]) -> str:
    """One document, on one line."""
    document = MessageToDict(encode_spans(spans), use_integers_for_enums=True)
    for item in _with_ids(document):
        for field in _ID_FIELDS:
            if field in item:
                # The general JSON form of protobuf has bytes in base64, OTLP's has ids in hex.
                item[field] = base64.b64decode(item[field]).hex()
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def _with_ids(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for resource_spans in document.get("resourceSpans", []):
        for scope_spans in resource_spans.get("scopeSpans", []):
            for span in scope_spans.get("spans", []):
                yield span
                yield from span.get("links", [])
