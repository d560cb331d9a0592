"""Makes any span fit to be sent.

Names and messages come from the cluster. The SDK cuts attributes only, and one text that is no
UTF-8 (a lone surrogate, as in a file name of another encoding) costs the exporters a whole batch.
"""

from collections.abc import Mapping, Sequence

from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.trace import Status
from opentelemetry.util.types import AnyValue

from rebalancer.telemetry.settings import LONGEST_TEXT_CHARACTERS


def sendable(span: ReadableSpan) -> ReadableSpan:
    """The same span with all its texts in UTF-8, its name and its status cut to size."""
    description = (span.status.description or "")[:LONGEST_TEXT_CHARACTERS]
    return ReadableSpan(
        name=_text(span.name[:LONGEST_TEXT_CHARACTERS]),
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes=_attributes(span.attributes),
        events=[
            Event(_text(event.name), _attributes(event.attributes), event.timestamp)
            for event in span.events
        ],
        links=span.links,
        kind=span.kind,
        status=Status(span.status.status_code, _text(description)),
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


def _attributes(attributes: Mapping[str, AnyValue] | None) -> Mapping[str, AnyValue]:
    return {_text(key): _value(value) for key, value in (attributes or {}).items()}


def _value(value: AnyValue) -> AnyValue:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [_value(item) for item in value]
    if isinstance(value, Mapping):
        return _attributes(value)
    return value


def _text(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
