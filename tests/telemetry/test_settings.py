"""What the standard variables ask for."""

import pytest

from rebalancer.errors import InputError
from rebalancer.telemetry.settings import Exporter, Protocol, read_tracing_settings
from rebalancer.telemetry.tracing import asks_for_exporter

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
TRACES_ENDPOINT = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
PROTOCOL = "OTEL_EXPORTER_OTLP_PROTOCOL"
TRACES_PROTOCOL = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
EXPORTER = "OTEL_TRACES_EXPORTER"
HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"
COLLECTOR = {ENDPOINT: "http://collector:4318"}


@pytest.mark.parametrize(
    ("environ", "exporter"),
    [
        ({}, Exporter.NONE),
        ({ENDPOINT: ""}, Exporter.NONE),
        ({EXPORTER: " "}, Exporter.NONE),
        (COLLECTOR, Exporter.OTLP),
        ({TRACES_ENDPOINT: "http://collector/traces"}, Exporter.OTLP),
        ({EXPORTER: "otlp"}, Exporter.OTLP),
        ({EXPORTER: "OTLP"}, Exporter.OTLP),
        ({EXPORTER: "console"}, Exporter.CONSOLE),
        ({**COLLECTOR, EXPORTER: "none"}, Exporter.NONE),
        ({**COLLECTOR, EXPORTER: "console"}, Exporter.CONSOLE),
    ],
)
def test_exporter_is_otlp_once_an_endpoint_is_set_unless_another_is_named(
    environ: dict[str, str], exporter: Exporter
) -> None:
    assert read_tracing_settings(environ).exporter is exporter


@pytest.mark.parametrize(
    ("environ", "protocol", "endpoint"),
    [
        ({EXPORTER: "otlp"}, Protocol.HTTP, "http://localhost:4318/v1/traces"),
        ({EXPORTER: "otlp", PROTOCOL: "grpc"}, Protocol.GRPC, "http://localhost:4317"),
        (COLLECTOR, Protocol.HTTP, "http://collector:4318/v1/traces"),
        ({ENDPOINT: "https://host/otlp/"}, Protocol.HTTP, "https://host/otlp/v1/traces"),
        ({TRACES_ENDPOINT: "https://host/in"}, Protocol.HTTP, "https://host/in"),
        ({**COLLECTOR, TRACES_ENDPOINT: "http://other"}, Protocol.HTTP, "http://other"),
        ({**COLLECTOR, PROTOCOL: "grpc"}, Protocol.GRPC, "http://collector:4318"),
        ({ENDPOINT: "collector:4317", PROTOCOL: "grpc"}, Protocol.GRPC, "collector:4317"),
        (
            {**COLLECTOR, PROTOCOL: "grpc", TRACES_PROTOCOL: "http/protobuf"},
            Protocol.HTTP,
            "http://collector:4318/v1/traces",
        ),
    ],
)
def test_variables_for_traces_win_and_http_is_the_default(
    environ: dict[str, str], protocol: Protocol, endpoint: str
) -> None:
    settings = read_tracing_settings(environ)
    assert (settings.protocol, settings.endpoint) == (protocol, endpoint)


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        (
            {"OTEL_SDK_DISABLED": "yes"},
            "OTEL_SDK_DISABLED: 'yes' is not known; allowed: true, false",
        ),
        (
            {EXPORTER: "zipkin"},
            "OTEL_TRACES_EXPORTER: 'zipkin' is not known; allowed: otlp, console, none",
        ),
        (
            {**COLLECTOR, TRACES_PROTOCOL: "http/json"},
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json' is not known;"
            " allowed: http/protobuf, grpc",
        ),
        (
            {**COLLECTOR, "OTEL_EXPORTER_OTLP_COMPRESSION": "zstd"},
            "OTEL_EXPORTER_OTLP_COMPRESSION: 'zstd' is not known; allowed: gzip, deflate, none",
        ),
        (
            {**COLLECTOR, PROTOCOL: "grpc", "OTEL_EXPORTER_OTLP_COMPRESSION": "none"},
            "OTEL_EXPORTER_OTLP_COMPRESSION: 'none' is not known; allowed: gzip",
        ),
        (
            {ENDPOINT: "collector:4318"},
            "OTEL_EXPORTER_OTLP_ENDPOINT: must be a URL such as http://collector:4318",
        ),
        (
            {TRACES_ENDPOINT: "ftp://collector", PROTOCOL: "grpc"},
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: must be a URL such as http://collector:4318",
        ),
        (
            {**COLLECTOR, "OTEL_EXPORTER_OTLP_TIMEOUT": "10s"},
            "OTEL_EXPORTER_OTLP_TIMEOUT: must be a number of seconds above 0",
        ),
        (
            {**COLLECTOR, "OTEL_BSP_MAX_QUEUE_SIZE": "0"},
            "OTEL_BSP_MAX_QUEUE_SIZE: must be a whole number above 0",
        ),
    ],
)
def test_unknown_value_names_the_variable_and_what_is_allowed(
    environ: dict[str, str], message: str
) -> None:
    with pytest.raises(InputError) as error:
        read_tracing_settings(environ)
    assert str(error.value) == message


@pytest.mark.parametrize("endpoint", ["http://", "http://[::1", "http://host:port", "//host", "\0"])
def test_endpoint_that_is_no_url_is_refused_and_not_repeated(endpoint: str) -> None:
    with pytest.raises(InputError, match="must be a URL such as"):
        read_tracing_settings({ENDPOINT: endpoint})


@pytest.mark.parametrize(
    "headers", ["S3cret", "authorization=S3cret%0A", "a b=S3cret", "x=1,S3cret"]
)
def test_unreadable_headers_are_refused_without_showing_them(headers: str) -> None:
    with pytest.raises(InputError, match=f"^{HEADERS}: must be name=value") as error:
        read_tracing_settings({**COLLECTOR, HEADERS: headers})
    assert "S3cret" not in str(error.value)


def test_secrets_are_header_values_and_what_an_endpoint_hides() -> None:
    settings = read_tracing_settings(
        {
            TRACES_ENDPOINT: "https://user:pass@host/in?key=K",
            HEADERS: "authorization=Bearer%20T, x-tenant=shop",
        }
    )
    assert set(settings.secrets) == {"Bearer%20T", "Bearer T", "shop", "user:pass", "key=K"}


@pytest.mark.parametrize(
    ("environ", "asks"),
    [
        ({}, False),
        (COLLECTOR, True),
        ({**COLLECTOR, "OTEL_SDK_DISABLED": "TRUE"}, False),
        ({**COLLECTOR, EXPORTER: "none"}, False),
        ({EXPORTER: "console"}, True),
    ],
)
def test_whether_anything_asks_for_an_exporter(environ: dict[str, str], asks: bool) -> None:
    assert asks_for_exporter(environ) is asks
