"""Metrics in Prometheus's text format, of machines that are as busy as a test says."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple, Self

from .commands import LOOPBACK


class Metric(NamedTuple):
    """One time series: a counter that grows by `per_second`, or a gauge that stays `value`."""

    name: str
    labels: Mapping[str, str]
    value: float = 0.0
    per_second: float = 0.0


class Exporter:
    """A context manager; serves its metrics to whoever asks, as they are at that time.

    Each sample bears the time that its value is for, so that rates are exact on a busy machine.
    """

    def __init__(self, *metrics: Metric) -> None:
        self._metrics = metrics
        self._started = time.time()
        self._server = ThreadingHTTPServer((LOOPBACK, 0), _handler(self.text))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def text(self) -> str:
        return "".join(self._lines(time.time()))

    def _lines(self, now: float) -> Iterator[str]:
        for metric in self._metrics:
            labels = ",".join(f'{name}="{_escaped(v)}"' for name, v in metric.labels.items())
            value = metric.value + metric.per_second * (now - self._started)
            yield f"{metric.name}{{{labels}}} {value} {now * 1000:.0f}\n"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _handler(text: Callable[[], str]) -> type[BaseHTTPRequestHandler]:
    class RequestHandler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = text().encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    return RequestHandler
