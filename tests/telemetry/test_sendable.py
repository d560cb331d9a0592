"""Any span can be sent, whatever texts the cluster put into it."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.trace import SpanContext, Status, StatusCode

from rebalancer.telemetry.sendable import sendable
from rebalancer.telemetry.settings import LONGEST_TEXT_CHARACTERS

CONTEXT = SpanContext(trace_id=1, span_id=2, is_remote=False)
any_text = st.text(st.characters(codec=None))
int64 = st.integers(-(2**63), 2**63 - 1)


def attributes(text: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, Any]]:
    values = text | int64 | st.lists(text) | st.binary()
    return st.dictionaries(text.filter(bool), values, max_size=3)


def span(name: str, message: str, values: Mapping[str, Any]) -> ReadableSpan:
    return ReadableSpan(
        name,
        context=CONTEXT,
        attributes=values,
        events=[Event(name, values, timestamp=1)],
        status=Status(StatusCode.ERROR, message),
        start_time=1,
        end_time=2,
    )


@given(any_text, any_text, attributes(any_text))
def test_any_text_is_sent(name: str, message: str, values: Mapping[str, Any]) -> None:
    encode_spans([sendable(span(name, message, values))]).SerializeToString()


@given(st.text(), st.text(), attributes(st.text()))
def test_proper_text_is_sent_as_it_is(name: str, message: str, values: Mapping[str, Any]) -> None:
    original = span(name, message, values)
    assert encode_spans([sendable(original)]) == encode_spans([original])


def test_what_is_no_text_is_replaced_where_it_stands() -> None:
    sent = sendable(span("vm\udcff", "no \ud800", {"node\ud800": ["n\ud8001", "n2"]}))
    assert sent.name == "vm?"
    assert sent.status.description == "no ?"
    assert dict(sent.attributes or {}) == {"node?": ["n?1", "n2"]}


@pytest.mark.parametrize("text", ["x" * 2_000_000, "\N{SNOWMAN}" * 100_000])
def test_huge_name_and_message_are_cut(text: str) -> None:
    sent = sendable(span(text, text, {}))
    assert sent.name == sent.status.description == text[:LONGEST_TEXT_CHARACTERS]
