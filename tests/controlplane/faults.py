"""An API server that misbehaves on request: a proxy before the real one.

Clients reach it by plain HTTP, with the same tokens. What no rule matches is passed on unchanged.
"""

import http.client
import json
import re
import secrets
import socket
import ssl
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self
from urllib.parse import parse_qs, urlsplit

from .cluster import ControlPlane
from .kubeconfig import write_kubeconfig

_REASONS = {
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}
# Of one connection, not of the message; and bodies are wanted as they are, not compressed.
_NOT_PASSED_ON = {
    "accept-encoding",
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "transfer-encoding",
}
_UPSTREAM_TIMEOUT_SECONDS = 600


@dataclass(frozen=True)
class Answer:
    """Answer with this status code and a Kubernetes Status, and do not pass the request on."""

    code: int
    retry_after_seconds: int | None = None


@dataclass(frozen=True)
class DropRequest:
    """Close the connection without an answer, and do not pass the request on."""


@dataclass(frozen=True)
class DropAnswer:
    """Pass the request on, then close the connection: it is done, and the client cannot know."""


@dataclass(frozen=True)
class CutWatch:
    """Pass on so many events, bookmarks included, then close the connection."""

    after_events: int = 0


@dataclass(frozen=True)
class ExpireWatch:
    """Pass on so many events, bookmarks included, then send an ERROR event with 410 Gone."""

    after_events: int = 0


@dataclass(frozen=True)
class Meanwhile:
    """Have something happen, then pass the request on: the world that it was made for is gone."""

    happens: Callable[[], object]


Fault = Meanwhile | Answer | DropRequest | DropAnswer | CutWatch | ExpireWatch


@dataclass(frozen=True)
class Request:
    """A request that came; `code` is None when the connection was closed without an answer."""

    method: str
    path: str
    code: int | None


@dataclass
class _Rule:
    method: str
    path: re.Pattern[str]
    fault: Fault
    times_left: int


class FaultProxy:
    """The proxy, serving from the moment it is made; a context manager, or `stop`.

    Attributes:
        server: its address.
    """

    def __init__(self, control_plane: ControlPlane) -> None:
        self._control_plane = control_plane
        self._lock = threading.Lock()
        self._rules: list[_Rule] = []
        self._requests: list[Request] = []
        self._listener = _Listener(self)
        self.server = f"http://127.0.0.1:{self._listener.server_port}"
        self.upstream = urlsplit(control_plane.server)
        self.trust = ssl.create_default_context(cafile=str(control_plane.ca_file))
        threading.Thread(target=self._listener.serve_forever, args=(0.05,), daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Close all connections, watches too."""
        self._listener.shutdown()
        self._listener.server_close()
        self._listener.close_connections()

    def kubeconfig(self, token: str | None = None) -> Path:
        """A kubeconfig that points here, for the administrator or for the bearer of `token`."""
        file = self._control_plane.folder / f"kubeconfig-{secrets.token_hex(4)}.yaml"
        return write_kubeconfig(file, self.server, token or self._control_plane.admin_token, None)

    def inject(self, method: str, path: str, fault: Fault, times: int = 1) -> None:
        """Let the next `times` requests meet the fault.

        `path` is a regular expression, searched in the path with its query. CutWatch and
        ExpireWatch match watches only, other faults match watches too. Earlier rules go first.
        """
        with self._lock:
            self._rules.append(_Rule(method, re.compile(path), fault, times))

    def requests(self, method: str = "", path: str = "") -> list[Request]:
        """What has come so far, in the order of the answers; `path` as in `inject`."""
        with self._lock:
            return [
                each
                for each in self._requests
                if method in ("", each.method) and re.search(path, each.path)
            ]

    def take_fault(self, method: str, path: str, *, is_watch: bool) -> Fault | None:
        """The fault for a request that has come, if any; one use of its rule is gone."""
        with self._lock:
            for rule in self._rules:
                if rule.times_left == 0 or rule.method != method or not rule.path.search(path):
                    continue
                if isinstance(rule.fault, CutWatch | ExpireWatch) and not is_watch:
                    continue
                rule.times_left -= 1
                return rule.fault
        return None

    def record(self, request: Request) -> None:
        with self._lock:
            self._requests.append(request)


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, proxy: FaultProxy) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.proxy = proxy
        self.connections: set[socket.socket] = set()

    def handle_error(self, *_: object) -> None:
        """Show what is no broken connection; those are this program's trade."""
        if not isinstance(sys.exception(), OSError | http.client.HTTPException):
            traceback.print_exc()

    def close_connections(self) -> None:
        for connection in list(self.connections):
            _close(connection)


class _Handler(BaseHTTPRequestHandler):
    """One connection of a client, with one of its own to the API server."""

    protocol_version = "HTTP/1.1"
    server: _Listener

    def setup(self) -> None:
        super().setup()
        proxy = self.server.proxy
        self.server.connections.add(self.connection)
        self._upstream = http.client.HTTPSConnection(
            proxy.upstream.hostname or "",
            proxy.upstream.port,
            context=proxy.trust,
            timeout=_UPSTREAM_TIMEOUT_SECONDS,
        )

    def finish(self) -> None:
        self._upstream.close()
        self.server.connections.discard(self.connection)
        super().finish()

    def log_message(self, format: str, *arguments: object) -> None:
        """Stay silent; tests ask `requests` instead."""

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        query = parse_qs(urlsplit(self.path).query)
        is_watch = query.get("watch", [""])[0] in ("1", "true")
        fault = self.server.proxy.take_fault(self.command, self.path, is_watch=is_watch)
        if isinstance(fault, Answer):
            self._answer_with_status(fault)
        elif isinstance(fault, DropRequest):
            self._drop()
        else:
            if isinstance(fault, Meanwhile):
                fault.happens()
            self._pass_on(body, fault, is_watch=is_watch)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815 (http.server's names)

    def _pass_on(self, body: bytes, fault: Fault | None, *, is_watch: bool) -> None:
        headers = {
            name: value
            for name, value in self.headers.items()
            if name.lower() not in _NOT_PASSED_ON
        }
        self._upstream.request(self.command, self.path, body or None, headers)
        response = self._upstream.getresponse()
        if isinstance(fault, DropAnswer):
            self._drop()
            return
        if is_watch and response.status == http.client.OK:
            self._send_head(response, {"Transfer-Encoding": "chunked"})
            self._stream(response, fault)
            return
        content = response.read()
        self._send_head(response, {"Content-Length": str(len(content))})
        self.wfile.write(content)

    def _stream(self, response: http.client.HTTPResponse, fault: Fault | None) -> None:
        events_left = fault.after_events if isinstance(fault, CutWatch | ExpireWatch) else -1
        while events_left != 0:
            line = response.readline()
            if not line:
                break
            self._send_chunk(line)
            events_left -= 1
        if isinstance(fault, CutWatch):
            _close(self.connection)
        if isinstance(fault, ExpireWatch):
            event = {"type": "ERROR", "object": _status(410)}
            self._send_chunk(json.dumps(event).encode() + b"\n")
        if not isinstance(fault, CutWatch):
            self.wfile.write(b"0\r\n\r\n")
        # Whatever else comes on the upstream's connection belongs to the watch that has ended.
        self.close_connection = True

    def _send_head(self, response: http.client.HTTPResponse, framing: dict[str, str]) -> None:
        self._record(response.status)
        self.send_response_only(response.status, response.reason)
        for name, value in response.getheaders():
            if name.lower() not in _NOT_PASSED_ON:
                self.send_header(name, value)
        for name, value in framing.items():
            self.send_header(name, value)
        self.end_headers()

    def _send_chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def _answer_with_status(self, answer: Answer) -> None:
        content = json.dumps(_status(answer.code)).encode()
        self._record(answer.code)
        self.send_response_only(answer.code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        if answer.retry_after_seconds is not None:
            self.send_header("Retry-After", str(answer.retry_after_seconds))
        self.end_headers()
        self.wfile.write(content)

    def _drop(self) -> None:
        self._record(None)
        _close(self.connection)
        self.close_connection = True

    def _record(self, code: int | None) -> None:
        self.server.proxy.record(Request(self.command, self.path, code))


def _status(code: int) -> dict[str, object]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "the test wanted this answer",
        "reason": _REASONS.get(code, "Unknown"),
        "code": code,
    }


def _close(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        # The client was faster.
        return
