"""What OpenTelemetry's standard variables ask for; nothing of its SDK is imported here.

Names and meaning: opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables and
opentelemetry.io/docs/specs/otel/protocol/exporter. Like there, an empty variable counts as unset
and values are read without regard to case. Unlike there, a value that is not known is an error,
so that a typing mistake is seen when the rebalancer starts, not when a trace is missed.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from rebalancer.errors import InputError


class Exporter(StrEnum):
    OTLP = "otlp"
    CONSOLE = "console"
    NONE = "none"


class Protocol(StrEnum):
    HTTP = "http/protobuf"
    GRPC = "grpc"


# A pair of variables: the first is for traces alone and wins.
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_HEADERS = ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")
_COMPRESSIONS = ("OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "OTEL_EXPORTER_OTLP_COMPRESSION")
_TIMEOUTS = ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT")
_BATCHING = (
    "OTEL_BSP_SCHEDULE_DELAY",
    "OTEL_BSP_MAX_QUEUE_SIZE",
    "OTEL_BSP_MAX_EXPORT_BATCH_SIZE",
)
_LENGTH_LIMIT = "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT"

LONGEST_TEXT_CHARACTERS = 4096
"""Longer than any name or reason that makes sense, and than most stack traces."""

_DEFAULT_ENDPOINT = {
    Protocol.HTTP: "http://localhost:4318",
    Protocol.GRPC: "http://localhost:4317",
}
# What the exporters of opentelemetry-python 1.45 take; gRPC's refuses even the standard's `none`.
_COMPRESSIONS_OF = {Protocol.HTTP: ("gzip", "deflate", "none"), Protocol.GRPC: ("gzip",)}

_URL = "a URL such as http://collector:4318"
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+=[ -~]*")
_WHOLE_NUMBER = re.compile(r"0*[1-9][0-9]*")
_NUMBER = re.compile(r"(?=.*[1-9])[0-9]*\.?[0-9]+")


class TracingSettings(NamedTuple):
    is_disabled: bool
    """OTEL_SDK_DISABLED: no span is recorded, not even for a file."""
    exporter: Exporter
    protocol: Protocol
    endpoint: str
    """Where the exporter sends to; empty unless it is OTLP's."""
    secrets: tuple[str, ...]
    """What no log may show: values of headers, user with password, and query of the endpoint;
    longest first."""
    longest_text_characters: int | None
    """Where texts are cut; None leaves that to OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT."""


def read_tracing_settings(environ: Mapping[str, str]) -> TracingSettings:
    """An endpoint alone asks for the OTLP exporter; without it nor OTEL_TRACES_EXPORTER: none.

    The protocol is http/protobuf unless a variable says otherwise, as the specification wants;
    OpenTelemetry's own start-up for Python would take grpc.

    Raises: InputError, naming the variable and what it may hold, never a secret.
    """
    is_disabled = _choice(environ, ["OTEL_SDK_DISABLED"], ("true", "false"), "false") == "true"
    default = Exporter.OTLP if _first_set(environ, _ENDPOINTS) else Exporter.NONE
    exporter = Exporter(_choice(environ, ["OTEL_TRACES_EXPORTER"], tuple(Exporter), default))
    longest_text = None if environ.get(_LENGTH_LIMIT) else LONGEST_TEXT_CHARACTERS
    if is_disabled or exporter is not Exporter.OTLP:
        return TracingSettings(is_disabled, exporter, Protocol.HTTP, "", (), longest_text)
    protocol = Protocol(_choice(environ, _PROTOCOLS, tuple(Protocol), Protocol.HTTP))
    _choice(environ, _COMPRESSIONS, _COMPRESSIONS_OF[protocol], "gzip")
    for variable in _TIMEOUTS:
        _check(environ, variable, _NUMBER.fullmatch, "a number of seconds above 0")
    for variable in _BATCHING:
        _check(environ, variable, _WHOLE_NUMBER.fullmatch, "a whole number above 0")
    for variable in _HEADERS:
        _check(environ, variable, _are_headers, "name=value, several separated by commas")
    endpoint = _endpoint(environ, protocol)
    return TracingSettings(
        is_disabled,
        exporter,
        protocol,
        endpoint,
        tuple(sorted(set(_secrets(environ, endpoint)) - {""}, key=len, reverse=True)),
        longest_text,
    )


def _first_set(environ: Mapping[str, str], variables: Sequence[str]) -> tuple[str, str] | None:
    """The name and value of the first of these that is set."""
    for variable in variables:
        value = environ.get(variable, "").strip()
        if value:
            return variable, value
    return None


def _choice(
    environ: Mapping[str, str], variables: Sequence[str], allowed: Sequence[str], default: str
) -> str:
    found = _first_set(environ, variables)
    if found is None:
        return default
    variable, value = found
    if value.lower() not in allowed:
        raise InputError(f"{variable}: {value!r} is not known; allowed: {', '.join(allowed)}")
    return value.lower()


def _check(
    environ: Mapping[str, str], variable: str, is_right: Callable[[str], object], allowed: str
) -> None:
    """The value stays out of the error, as it may be a secret."""
    value = environ.get(variable, "").strip()
    if value and not is_right(value):
        raise InputError(f"{variable}: must be {allowed}")


def _endpoint(environ: Mapping[str, str], protocol: Protocol) -> str:
    found = _first_set(environ, _ENDPOINTS)
    variable, value = found or ("", _DEFAULT_ENDPOINT[protocol])
    if protocol is Protocol.GRPC:
        # A gRPC channel takes more than URLs: `collector:4317`, `unix:/run/collector.sock`.
        _check(environ, variable, lambda text: "://" not in text or _is_url(text), _URL)
        return value
    _check(environ, variable, _is_url, _URL)
    if variable == _ENDPOINTS[0]:
        return value
    return value.removesuffix("/") + "/v1/traces"


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _are_headers(text: str) -> bool:
    entries = [entry.strip() for entry in text.split(",")]
    return all(
        not entry or (_HEADER.fullmatch(entry) and unquote(entry).isprintable())
        for entry in entries
    )


def _secrets(environ: Mapping[str, str], endpoint: str) -> Iterator[str]:
    for variable in _HEADERS:
        for entry in environ.get(variable, "").split(","):
            value = entry.partition("=")[2].strip()
            yield from (value, unquote(value))
    parts = urlsplit(endpoint)
    yield from (parts.netloc.rpartition("@")[0], parts.query)
