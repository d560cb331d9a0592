"""Plays virt-handler, KubeVirt's agent on each node, for nodes that run nothing.

virt-controller takes VMIs and migrations up to where a node has to act, and then waits for what
virt-handler writes into the VMI. This writes it, driven by a watch.
"""

import logging
import queue
import threading
import time
from collections.abc import Callable

import httpx

from .api import Api, ApiError, Object, path_of
from .handled_vmi import NEVER, HandledVmi
from .migration_scripts import MigrationScript, MigrationScripts

_VMIS = path_of("virtualmachineinstances")
# The server ends each watch after so long; the watching thread may outlive `stop` by as much.
_WATCH_SECONDS = 10
_RETRY_SECONDS = 0.5

log = logging.getLogger(__name__)


class NodeAgent:
    """virt-handler of all nodes at once, in two threads: one watches, one acts."""

    def __init__(self, connect: Callable[[], Api]) -> None:
        self._connect = connect
        self._scripts = MigrationScripts()
        self._news: queue.SimpleQueue[tuple[str, Object]] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._actor = threading.Thread(target=self._act, name="node-agent", daemon=True)
        self._watcher = threading.Thread(target=self._watch, name="node-watch", daemon=True)

    def start(self) -> None:
        self._actor.start()
        self._watcher.start()

    def stop(self) -> None:
        """Stop for good; nothing more is written once this has returned."""
        self._stopping.set()
        self._wake()
        if self._actor.is_alive():
            self._actor.join()

    def script(self, vmi_name: str, *scripts: MigrationScript) -> None:
        """Play the next migrations of that VMI by these, in this order; the last one stays."""
        self._scripts.set(vmi_name, scripts)

    def script_others(self, script: MigrationScript) -> None:
        """Play the migrations of VMIs that have no script of their own by this one."""
        self._scripts.set_default(script)

    def release(self, vmi_name: str) -> None:
        """Let the stalled migration of that VMI succeed."""
        self._scripts.release(vmi_name)
        self._wake()

    def forget_scripts(self) -> None:
        """Migrations that begin from now on succeed in a moment again."""
        self._scripts.clear()

    def _wake(self) -> None:
        self._news.put(("WAKE", {}))

    def _watch(self) -> None:
        with self._connect() as api:
            while not self._stopping.is_set():
                try:
                    self._list_and_watch(api)
                except (ApiError, httpx.TransportError) as error:
                    if not self._stopping.wait(_RETRY_SECONDS):
                        log.info("node agent lists VMIs anew after: %s", error)

    def _list_and_watch(self, api: Api) -> None:
        listing = api.get(_VMIS)
        version = listing["metadata"]["resourceVersion"]
        for vmi in listing["items"]:
            self._news.put(("MODIFIED", vmi))
        while not self._stopping.is_set():
            for kind, vmi in api.watch(_VMIS, version, _WATCH_SECONDS):
                version = vmi["metadata"]["resourceVersion"]
                self._news.put((kind, vmi))

    def _act(self) -> None:
        handled: dict[str, HandledVmi] = {}
        with self._connect() as api:
            while not self._stopping.is_set():
                due = min((vmi.due for vmi in handled.values()), default=NEVER)
                self._take_news(handled, due)
                for uid, vmi in list(handled.items()):
                    if vmi.due <= time.monotonic() and not vmi.act(api):
                        del handled[uid]

    def _take_news(self, handled: dict[str, HandledVmi], until: float) -> None:
        """Wait for one piece of news, but not longer than `until`."""
        timeout = None if until == NEVER else max(until - time.monotonic(), 0)
        try:
            kind, vmi = self._news.get(timeout=timeout)
        except queue.Empty:
            return
        if kind == "WAKE":
            for each in handled.values():
                each.due = 0.0
        elif kind == "DELETED":
            handled.pop(vmi["metadata"]["uid"], None)
        elif vmi["metadata"]["uid"] in handled:
            handled[vmi["metadata"]["uid"]].update(vmi)
        else:
            handled[vmi["metadata"]["uid"]] = HandledVmi(vmi, self._scripts)
