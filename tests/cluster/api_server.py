"""An API server of a few lines: each test says what it answers, and sees what it was asked."""

import json
import ssl
import threading
from collections import deque
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self
from urllib.parse import parse_qsl, urlsplit

from kubernetes.client import Configuration

from rebalancer.cluster.api import Api

Json = dict[str, Any]


class Asked(NamedTuple):
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


class Answer(NamedTuple):
    status: int = 200
    body: Any = None
    headers: Sequence[tuple[str, str]] = ()
    cut_off: bool = False
    """The connection ends in the middle of the body."""
    lines: Sequence[Any] | None = None
    """Instead of a body: events, after which the answer stays open unless it is `cut_off`."""


Handler = Callable[[Asked], Answer]


def refusal(status: int, message: str, *headers: tuple[str, str]) -> Answer:
    body = {"kind": "Status", "status": "Failure", "message": message, "code": status}
    return Answer(status, body, headers)


class ApiServer:
    """A context manager; `answers` are given in turn for a path, the last one for ever."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.asked: list[Asked] = []
        self.closing = threading.Event()
        self.date = ""
        """What the header Date says, if not the time."""
        self._answers: dict[tuple[str, str], deque[Answer | Handler]] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._scheme = "http"
        if tls is not None:
            self._scheme = "https"
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_port}"

    @property
    def configuration(self) -> Configuration:
        configuration = Configuration(host=self.url)
        configuration.proxy = None
        return configuration

    @property
    def api(self) -> Api:
        return Api(self.configuration)

    def on(self, method: str, path: str, *answers: Answer | Handler) -> None:
        self._answers[method, path] = deque(answers)

    def on_list(self, path: str, *items: Json, version: str = "1", kind: str = "List") -> None:
        body = {"kind": kind, "metadata": {"resourceVersion": version}, "items": list(items)}
        self.on("GET", path, Answer(body=body))

    def answer(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        answers = self._answers.get((asked.method, asked.path))
        if answers is None:
            return refusal(404, "the server could not find the requested resource")
        found = answers.popleft() if len(answers) > 1 else answers[0]
        return found if isinstance(found, Answer) else found(asked)

    def queries(self, path: str) -> list[dict[str, str]]:
        return [asked.query for asked in self.asked if asked.path == path]


def _handler(server: ApiServer) -> type[BaseHTTPRequestHandler]:
    class RequestHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _serve(self) -> None:
            url = urlsplit(self.path)
            length = int(self.headers.get("Content-Length", 0))
            body = json.loads(self.rfile.read(length)) if length else None
            query = dict(parse_qsl(url.query))
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = server.answer(Asked(self.command, url.path, query, headers, body))
            self.send_response(answer.status)
            for name, value in answer.headers:
                self.send_header(name, value)
            if answer.lines is None:
                self._send_body(answer)
            else:
                self._send_lines(answer)

        def _send_body(self, answer: Answer) -> None:
            body = answer.body if isinstance(answer.body, bytes) else to_json(answer.body)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if answer.cut_off else body)
            self.close_connection = answer.cut_off

        def _send_lines(self, answer: Answer) -> None:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for line in answer.lines or ():
                data = (line if isinstance(line, bytes) else to_json(line)) + b"\n"
                self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.flush()
            if not answer.cut_off:
                server.closing.wait()
            self.close_connection = True

        do_GET = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815

        def date_time_string(self, timestamp: float | None = None) -> str:
            return server.date or super().date_time_string(timestamp)

        def log_message(self, *_: object) -> None:
            pass

    return RequestHandler


def to_json(value: Any) -> bytes:
    return json.dumps(value).encode()
