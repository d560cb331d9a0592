"""An API server and a kube-scheduler, and nothing that would change what they see.

The scheduler is the real one with its default plugins. Two things are configured: an extender,
which it asks about the nodes that have passed all its filters, and no preemption. The extender
writes the nodes down and refuses them all, so that nothing is ever bound and no pod's answer
depends on another's. The scheduler is started when everything is in place, and waits until it has
read all of it before it looks at the first pod, so that no answer is from a stale cache.
"""

import json
import secrets
import shutil
import ssl
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import httpx

from tests.controlplane import commands
from tests.controlplane.api import Api
from tests.controlplane.build import CRDS_FILE, ensure_built
from tests.controlplane.kubeconfig import write_kubeconfig
from tests.controlplane.kubevirt import install_kubevirt
from tests.controlplane.processes import Component, free_ports

ACCEPTED = "accepted by every filter"
"""The extender's words for each node that it refuses."""

_READY_SECONDS = 120.0
_WITHOUT = "ServiceAccount,StorageObjectInUseProtection,TaintNodesByCondition"


class SchedulerRig:
    """A context manager."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="scheduler-"))
        self._token = secrets.token_hex(16)
        self._components: list[Component] = []
        self._programs = ensure_built(("certificates", "etcd", "kubernetes", "kubevirt"))
        self._server = ""

    def __enter__(self) -> Self:
        subprocess.run([self._programs["certificates"] / "certificates", self._folder], check=True)
        tokens = self._folder / "tokens.csv"
        tokens.write_text(f'{self._token},admin,admin,"system:masters"\n')
        etcd, peer, apiserver = free_ports(3)
        program = self._programs["etcd"] / "server"
        self._start("etcd", commands.etcd(program, self._folder / "etcd", etcd, peer))
        self._server = f"https://{commands.LOOPBACK}:{apiserver}"
        program = self._programs["kubernetes"] / "kube-apiserver"
        command = commands.apiserver(program, self._folder, tokens, apiserver, etcd)
        command.append(f"--disable-admission-plugins={_WITHOUT}")
        component = self._start("kube-apiserver", command)
        component.wait_until(lambda: self._answers(f"{self._server}/readyz"), _READY_SECONDS)
        definitions = json.loads((self._programs["kubevirt"] / CRDS_FILE).read_bytes())
        with self.api() as api:
            install_kubevirt(api, definitions)
        return self

    def __exit__(self, *_: object) -> None:
        for component in reversed(self._components):
            component.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def api(self) -> Api:
        return Api(self._server, self._token, self._folder / "ca.crt")

    def kubeconfig(self) -> Path:
        file = self._folder / "kubeconfig"
        return write_kubeconfig(file, self._server, self._token, self._folder / "ca.crt")

    @contextmanager
    def scheduler(self) -> Iterator[Mapping[str, tuple[str, ...]]]:
        """While the scheduler runs: pod uid to the nodes that passed all filters, as it goes on.

        A pod that none passed is not in it.
        """
        answers: dict[str, tuple[str, ...]] = {}
        extender = ThreadingHTTPServer((commands.LOOPBACK, 0), _handler(answers))
        threading.Thread(target=extender.serve_forever, daemon=True).start()
        config = self._folder / "scheduler.json"
        config.write_text(json.dumps(self._configuration(extender.server_port)))
        (port,) = free_ports(1)
        program = self._programs["kubernetes"] / "kube-scheduler"
        command = commands.scheduler(program, self._folder, self.kubeconfig(), port)
        component = self._start("kube-scheduler", [*command, f"--config={config}"])
        try:
            yield answers
        finally:
            component.stop()
            self._components.remove(component)
            extender.shutdown()
            extender.server_close()

    def _configuration(self, extender_port: int) -> Mapping[str, Any]:
        without_preemption = {"postFilter": {"disabled": [{"name": "*"}]}}
        return {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": str(self.kubeconfig()), "qps": 1000, "burst": 1000},
            "leaderElection": {"leaderElect": False},
            # All nodes are to be filtered, not as many as are enough to score.
            "percentageOfNodesToScore": 100,
            "profiles": [{"plugins": without_preemption}],
            "extenders": [
                {
                    "urlPrefix": f"http://{commands.LOOPBACK}:{extender_port}",
                    "filterVerb": "filter",
                    "nodeCacheCapable": True,
                    "httpTimeout": "60s",
                }
            ],
        }

    def _start(self, name: str, command: list[str]) -> Component:
        component = Component(name, command, self._folder)
        self._components.append(component)
        return component

    def _answers(self, url: str) -> bool:
        trusted = ssl.create_default_context(cafile=str(self._folder / "ca.crt"))
        headers = {"Authorization": f"Bearer {self._token}"}
        try:
            return httpx.get(url, verify=trusted, trust_env=False, headers=headers).is_success
        except httpx.TransportError:
            return False


def _handler(answers: dict[str, tuple[str, ...]]) -> type[BaseHTTPRequestHandler]:
    class Extender(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            nodes = asked["NodeNames"]
            answers[asked["Pod"]["metadata"]["uid"]] = tuple(sorted(nodes))
            refusal = {"NodeNames": [], "FailedNodes": dict.fromkeys(nodes, ACCEPTED)}
            body = json.dumps(refusal).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            # The scheduler may be stopped while it tries a pod once more.
            with suppress(BrokenPipeError, ConnectionResetError):
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Nothing: the scheduler's own log has each request that failed."""

    return Extender
