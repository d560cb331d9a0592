from collections.abc import Callable
from pathlib import Path

import pytest

from rebalancer.cluster.protocols import Cluster
from tests.cli.command import Cli


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Cli:
    return Cli(monkeypatch, capsys, tmp_path)


@pytest.fixture
def use_cluster(monkeypatch: pytest.MonkeyPatch) -> Callable[[Cluster], None]:
    """Has commands act on a cluster of the test's, whatever kubeconfig they are told."""

    def use(cluster: Cluster) -> None:
        for module in ("drain", "run", "serve", "setup"):
            monkeypatch.setattr(f"rebalancer.cli.{module}.open_cluster", lambda *_: cluster)

    return use
