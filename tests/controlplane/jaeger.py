"""Jaeger in one process, to send OpenTelemetry traces to and to ask for them."""

import shutil
import tempfile
from pathlib import Path
from typing import Any, Self

import httpx

from .build import ensure_built
from .commands import LOOPBACK
from .processes import Component, free_ports
from .waiting import DEFAULT_SECONDS, wait_for

_READY_SECONDS = 30.0

# All that it listens on, so that two can run side by side.
_LISTENERS = (
    "admin.http",
    "collector.grpc-server",
    "collector.http-server",
    "collector.otlp.grpc",
    "collector.otlp.http",
    "query.grpc-server",
    "query.http-server",
)

Trace = dict[str, Any]


class Jaeger:
    """Jaeger, keeping its traces in memory; a context manager, or `start` and `stop`.

    Attributes:
        otlp_grpc_endpoint, otlp_http_endpoint: for OTEL_EXPORTER_OTLP_ENDPOINT, by protocol.
        address: its HTTP API.
    """

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="jaeger-"))
        self._ports = dict(zip(_LISTENERS, free_ports(len(_LISTENERS)), strict=True))
        self.otlp_grpc_endpoint = self._address_of("collector.otlp.grpc")
        self.otlp_http_endpoint = self._address_of("collector.otlp.http")
        self.address = self._address_of("query.http-server")
        self._component: Component | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Build it if it is missing, and return when it takes traces.

        Raises: BuildError, ComponentError.
        """
        program = ensure_built(("jaeger",))["jaeger"] / "all-in-one"
        listeners = [f"--{name}.host-port={LOOPBACK}:{port}" for name, port in self._ports.items()]
        self._component = Component("jaeger", [program, *listeners], self._folder)
        self._component.wait_until(self._is_ready, _READY_SECONDS)

    def stop(self) -> None:
        if self._component is not None:
            self._component.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def query(
        self, service: str, *, at_least: int = 1, seconds: float = DEFAULT_SECONDS, **filters: str
    ) -> list[Trace]:
        """The traces of a service, as soon as there are `at_least` so many.

        `filters` go into the query: `operation="plan"`, `tags='{"error":"true"}'`.
        Raises: TimeoutError when there are not so many after `seconds`.
        """
        parameters = {"service": service, "limit": "1000", **filters}

        def read() -> list[Trace]:
            answer = httpx.get(f"{self.address}/api/traces", params=parameters, trust_env=False)
            traces: list[Trace] = answer.raise_for_status().json()["data"]
            return traces

        return wait_for(
            read, lambda traces: len(traces) >= at_least, f"{at_least} traces of {service}", seconds
        )

    def _is_ready(self) -> bool:
        try:
            address = self._address_of("admin.http")
            return httpx.get(address, trust_env=False).is_success
        except httpx.TransportError:
            return False

    def _address_of(self, listener: str) -> str:
        return f"http://{LOOPBACK}:{self._ports[listener]}"
