"""Small collectors: they take spans by OTLP and keep them."""

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

LOOPBACK = "127.0.0.1"


class Received:
    """What a collector was sent.

    Attributes:
        requests: the body of each that was taken.
        path, headers: of the last request, names in lower case.
        status: what the next requests are answered with; 200 takes them.
    """

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.requests: list[ExportTraceServiceRequest] = []
        self.headers: dict[str, str] = {}
        self.path = ""
        self.status = 200

    def spans(self) -> list[Span]:
        return [
            span
            for request in self.requests
            for resource_spans in request.resource_spans
            for scope_spans in resource_spans.scope_spans
            for span in scope_spans.spans
        ]

    def resource(self) -> dict[str, str]:
        """The attributes that say which process sent the last request."""
        attributes = self.requests[-1].resource_spans[0].resource.attributes
        return {each.key: each.value.string_value for each in attributes}


@contextmanager
def http_collector() -> Iterator[Received]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if received.status == 200:
                received.requests.append(ExportTraceServiceRequest.FromString(body))
            received.path = self.path
            received.headers = {name.lower(): value for name, value in self.headers.items()}
            self.send_response(received.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
    received = Received(f"http://{LOOPBACK}:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield received
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def grpc_collector() -> Iterator[Received]:
    class Servicer(TraceServiceServicer):
        def Export(  # noqa: N802 (the service calls it so)
            self, request: ExportTraceServiceRequest, context: grpc.ServicerContext
        ) -> ExportTraceServiceResponse:
            received.requests.append(request)
            received.headers = {each.key: each.value for each in context.invocation_metadata()}
            return ExportTraceServiceResponse()

    server = grpc.server(ThreadPoolExecutor(max_workers=2))
    add_TraceServiceServicer_to_server(Servicer(), server)  # type: ignore[no-untyped-call]
    received = Received(f"http://{LOOPBACK}:{server.add_insecure_port(f'{LOOPBACK}:0')}")
    server.start()
    try:
        yield received
    finally:
        server.stop(None).wait()


@contextmanager
def silent_endpoint() -> Iterator[str]:
    """Takes connections and never says a word."""
    with socket.create_server((LOOPBACK, 0)) as listener:
        yield f"http://{LOOPBACK}:{listener.getsockname()[1]}"


def closed_endpoint() -> str:
    """Refuses connections."""
    with socket.create_server((LOOPBACK, 0)) as listener:
        return f"http://{LOOPBACK}:{listener.getsockname()[1]}"
