"""Prometheus, to be asked for what it has collected from an exporter."""

import json
import shutil
import tempfile
from pathlib import Path
from typing import Self

import httpx

from .commands import LOOPBACK
from .processes import Component, free_ports

_READY_SECONDS = 60.0


class Prometheus:
    """Prometheus with one exporter; a context manager, or `start` and `stop`.

    Attributes:
        url: its HTTP API.
    """

    def __init__(self, program: Path, exporter: str) -> None:
        """`exporter` is its address, as host and port."""
        self._program = program
        self._folder = Path(tempfile.mkdtemp(prefix="prometheus-"))
        [port] = free_ports(1)
        self._address = f"{LOOPBACK}:{port}"
        self.url = f"http://{self._address}"
        self._component: Component | None = None
        scrape = {
            "job_name": "exporter",
            "scrape_interval": "250ms",
            "scrape_timeout": "250ms",
            # One exporter speaks for all nodes, so their `instance` is not that of the exporter.
            "honor_labels": True,
            "static_configs": [{"targets": [exporter]}],
        }
        # JSON is YAML.
        (self._folder / "prometheus.yml").write_text(json.dumps({"scrape_configs": [scrape]}))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Return when it takes queries.

        Raises: ComponentError.
        """
        command = [
            str(self._program),
            "--config.file=prometheus.yml",
            "--storage.tsdb.path=data",
            f"--web.listen-address={self._address}",
            "--log.level=warn",
        ]
        self._component = Component("prometheus", command, self._folder)
        self._component.wait_until(self._is_ready, _READY_SECONDS)

    def stop(self) -> None:
        if self._component is not None:
            self._component.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _is_ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/-/ready", trust_env=False).is_success
        except httpx.TransportError:
            return False
