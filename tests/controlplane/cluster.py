"""The control plane as child processes on free ports of the loopback address."""

import json
import secrets
import shutil
import ssl
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Self

import httpx

from . import commands
from .admission import HEALTH_PATH, register_webhooks
from .api import Api, path_of
from .build import CRDS_FILE, STAGES_FOLDER, ensure_built
from .kubeconfig import write_kubeconfig
from .kubevirt import install_kubevirt
from .node_agent import NodeAgent
from .processes import Component, free_ports

# Seen on two idle cores: 4 s for the slowest. The rest is for machines that are busy.
_READY_SECONDS = 120.0

# User and group of each static token.
_USERS = {
    "admin": ("admin", "system:masters"),
    "scheduler": ("system:kube-scheduler", ""),
    "controller-manager": ("system:kube-controller-manager", ""),
}


class ControlPlane:
    """A control plane without nodes; a context manager, or `start` and `stop`.

    The child processes end with the thread that called `start`, whatever ends it.

    Attributes:
        folder: state, kubeconfigs, and `logs` with one file per component.
        server: the API server's address, once started.
        ca_file: the certificate authority that a client has to trust.
        admin_token: bearer of every right.
        node_agent: plays virt-handler; migrations are scripted on it.
    """

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="controlplane-"))
        self.logs = self.folder / "logs"
        self.server = ""
        self.ca_file = self.folder / "ca.crt"
        self._tokens = {user: secrets.token_hex(16) for user in _USERS}
        self.admin_token = self._tokens["admin"]
        self.node_agent = NodeAgent(self.api)
        self._components: list[Component] = []
        self._waits: list[Callable[[], None]] = []

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Build what is missing, start everything, and return when VMIs can be created.

        Raises: BuildError; ComponentError, naming the component, with the tail of its log.
        """
        try:
            self._start()
        except BaseException:
            self.stop(keep_folder=True)
            raise

    def stop(self, *, keep_folder: bool = False) -> None:
        """End every process and remove the folder, or keep it for its logs."""
        self.node_agent.stop()
        for component in reversed(self._components):
            component.stop()
        self._components.clear()
        if not keep_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def api(self, token: str | None = None) -> Api:
        """The API for the administrator, or for the bearer of `token`; the caller closes it."""
        return Api(self.server, token or self.admin_token, self.ca_file)

    def kubeconfig(self, token: str | None = None) -> Path:
        """A new kubeconfig file for the administrator, or for the bearer of `token`."""
        file = self.folder / f"kubeconfig-{secrets.token_hex(4)}.yaml"
        return write_kubeconfig(file, self.server, token or self.admin_token, self.ca_file)

    @property
    def kubectl(self) -> Path:
        """The program, of the API server's version."""
        return ensure_built(("kubernetes",))["kubernetes"] / "kubectl"

    def service_account_token(self, namespace: str, name: str) -> str:
        """A token of an existing service account, valid for an hour, as its pod would get it."""
        path = path_of("serviceaccounts", namespace, name) + "/token"
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        with self.api() as api:
            token: str = api.create(path, request)["status"]["token"]
            return token

    def _start(self) -> None:
        programs = ensure_built()
        kubernetes, kubevirt = programs["kubernetes"], programs["kubevirt"]
        self.logs.mkdir()
        subprocess.run([programs["certificates"] / "certificates", self.folder], check=True)
        etcd, etcd_peer, apiserver, scheduler, manager, kwok, virt_controller, virt_api = (
            free_ports(8)
        )

        program = programs["etcd"] / "server"
        self._run("etcd", commands.etcd(program, self.folder / "etcd", etcd, etcd_peer))
        self.server = f"https://{commands.LOOPBACK}:{apiserver}"
        tokens = self._write_tokens()
        program = kubernetes / "kube-apiserver"
        command = commands.apiserver(program, self.folder, tokens, apiserver, etcd)
        self._run("kube-apiserver", command, f"{self.server}/readyz")
        # The others would start against a server that is not there, and back off.
        self._wait()

        for name, port, command_of in (
            ("scheduler", scheduler, commands.scheduler),
            ("controller-manager", manager, commands.controller_manager),
        ):
            command = command_of(
                kubernetes / f"kube-{name}",
                self.folder,
                self.kubeconfig(self._tokens[name]),
                port,
            )
            self._run(f"kube-{name}", command, f"https://{commands.LOOPBACK}:{port}/healthz")
        admin = self.kubeconfig()
        program = programs["kwok"] / "kwok"
        command = commands.kwok(program, programs["kwok"] / STAGES_FOLDER, admin, kwok)
        self._run("kwok", command, f"http://{commands.LOOPBACK}:{kwok}/healthz")

        with self.api() as api:
            install_kubevirt(api, json.loads((kubevirt / CRDS_FILE).read_bytes()))
        program = kubevirt / "virt-controller"
        command = commands.virt_controller(program, self.folder, admin, virt_controller)
        leader = f"https://{commands.LOOPBACK}:{virt_controller}/leader"
        self._run("virt-controller", command, leader)
        command = commands.virt_api(kubevirt / "virt-api", self.folder, admin, virt_api)
        address = f"https://{commands.LOOPBACK}:{virt_api}"
        self._run("virt-api", command, f"{address}{HEALTH_PATH}")
        self._wait()
        with self.api() as api:
            register_webhooks(api, address, self.ca_file)
        self.node_agent.start()

    def _run(self, name: str, command: list[str], ready_url: str | None = None) -> None:
        component = Component(name, command, self.logs)
        self._components.append(component)
        if ready_url is not None:
            url = ready_url
            self._waits.append(
                lambda: component.wait_until(lambda: self._is_ready(url), _READY_SECONDS)
            )

    def _wait(self) -> None:
        for wait in self._waits:
            wait()
        self._waits.clear()

    def _is_ready(self, url: str) -> bool:
        try:
            response = httpx.get(
                url,
                verify=ssl.create_default_context(cafile=str(self.ca_file)),
                trust_env=False,
                headers={"Authorization": f"Bearer {self.admin_token}"},
            )
        except httpx.TransportError:
            return False
        if url.endswith("/leader"):
            return '"true"' in response.text
        return response.is_success

    def _write_tokens(self) -> Path:
        file = self.folder / "tokens.csv"
        lines = []
        for key, (user, group) in _USERS.items():
            lines.append(f'{self._tokens[key]},{user},{user},"{group}"\n')
        file.write_text("".join(lines))
        file.chmod(0o600)
        return file
