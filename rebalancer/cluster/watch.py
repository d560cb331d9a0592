"""Waiting for a change, by raw watches that last no longer than the wait."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec
from msgspec.json import Decoder
from urllib3 import BaseHTTPResponse
from urllib3.exceptions import HTTPError

from rebalancer.cluster import wire
from rebalancer.cluster.api import Api
from rebalancer.cluster.kinds import Kind
from rebalancer.errors import ClusterError

_PAUSE_SECONDS = 1.0
"""A watch that ends early may hide a change, so the wait ends too, but no sooner than this."""


class WatchedMetadata(wire.Wire):
    namespace: str | None = None
    resource_version: str | None = None


class Watched(wire.Wire):
    """The object that an event is about."""

    metadata: WatchedMetadata
    spec: wire.MigrationSpec | None = None


class Event(wire.Wire):
    type: str
    object: Watched


class Watch(NamedTuple):
    """Which events end the wait."""

    kind: Kind
    query: Mapping[str, str]
    is_relevant: Callable[[Watched], bool]


_EVENT: Decoder[Event] = Decoder(Event)
_CHANGES = {"ADDED", "MODIFIED", "DELETED"}


def wait_for_change(
    api: Api, watches: Sequence[Watch], versions: dict[Kind, str], seconds: float
) -> None:
    """Returns at the first relevant event, or after that time.

    Faults (no connection, an expired version, lines that are no events) never surface. Where they
    end a watch, the wait ends as well, at the earliest after a second.

    Args:
        versions: after which version of each kind events count; carried on with each event.
    """
    changed = threading.Event()
    listeners = [_Listener(api, watch, versions, seconds, changed) for watch in watches]
    threads = [
        threading.Thread(target=listener.listen, name=listener.name, daemon=True)
        for listener in listeners
    ]
    for thread in threads:
        thread.start()
    try:
        changed.wait(seconds)
    finally:
        for listener in listeners:
            listener.stop()
        for thread in threads:
            thread.join()


class _Listener:
    """Reads one watch in a thread of its own until something relevant happens."""

    def __init__(
        self,
        api: Api,
        watch: Watch,
        versions: dict[Kind, str],
        seconds: float,
        changed: threading.Event,
    ) -> None:
        self._api = api
        self._watch = watch
        self._versions = versions
        self._seconds = seconds
        self._changed = changed
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._response: BaseHTTPResponse | None = None

    @property
    def name(self) -> str:
        return f"watch {self._watch.kind.resource}"

    def listen(self) -> None:
        paused_until = time.monotonic() + _PAUSE_SECONDS
        if not self._sees_change():
            self._over.wait(max(0.0, paused_until - time.monotonic()))
        self._changed.set()

    def stop(self) -> None:
        """Wakes the thread up, wherever it is."""
        self._over.set()
        with self._lock, suppress(RuntimeError, ValueError, OSError):
            if self._response is not None:
                self._response.shutdown()

    def _sees_change(self) -> bool:
        query = dict(self._watch.query)
        if version := self._versions.get(self._watch.kind):
            query["resourceVersion"] = version
        # Stopping pulls the connection away from under the reader, which may show as any of these.
        with suppress(ClusterError, HTTPError, OSError, ValueError, AttributeError):
            response = self._api.watch(self._watch.kind, query, self._seconds)
            with self._lock:
                self._response = response
            try:
                return not self._over.is_set() and any(map(self._is_change, _lines(response)))
            finally:
                with self._lock:
                    self._response = None
                response.close()
        return False

    def _is_change(self, line: bytes) -> bool:
        try:
            event = _EVENT.decode(line)
        except msgspec.DecodeError:
            return False
        if event.type not in _CHANGES:
            return False
        if version := event.object.metadata.resource_version:
            self._versions[self._watch.kind] = version
        return self._watch.is_relevant(event.object)


def _lines(response: BaseHTTPResponse) -> Iterator[bytes]:
    rest = b""
    for chunk in response.stream():
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
