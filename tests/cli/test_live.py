"""Commands that meet an API server which is no use to them."""

import json
from pathlib import Path

import pytest

from rebalancer.cluster.kinds import KUBEVIRT, LEASE, SNAPSHOT_KINDS
from rebalancer.cluster.lease import NAME as LEASE_NAME
from rebalancer.policy.model import ExecutionPolicy
from tests.cli.command import Cli, assert_error
from tests.cluster.api_server import ApiServer, refusal

COMMANDS = (["plan"], ["run"], ["explain", "vm"])
NAMESPACE = ExecutionPolicy().namespace


@pytest.fixture(autouse=True)
def _pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests are repeated at once."""
    monkeypatch.setattr("urllib3.util.retry.time.sleep", lambda _: None)


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    return tmp_path / "kubeconfig"


def write_kubeconfig(file: Path, url: str) -> None:
    document = {
        "current-context": "test",
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "clusters": [{"name": "test", "cluster": {"server": url}}],
        "users": [{"name": "test", "user": {"token": "very-secret"}}],
    }
    file.write_text(json.dumps(document))


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda a: a[0])
def test_api_server_that_is_not_there_is_named(
    cli: Cli, kubeconfig: Path, arguments: list[str]
) -> None:
    with ApiServer() as server:
        url = server.url
    write_kubeconfig(kubeconfig, url)
    done = cli(*arguments, "--kubeconfig", kubeconfig)
    assert_error(done, 1, url)
    assert "very-secret" not in done.stderr


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda a: a[0])
def test_request_that_is_refused_is_named_with_what_the_server_said(
    cli: Cli, kubeconfig: Path, arguments: list[str]
) -> None:
    with ApiServer() as server:
        write_kubeconfig(kubeconfig, server.url)
        for path in (KUBEVIRT.path(), LEASE.path(NAMESPACE, LEASE_NAME)):
            server.on("GET", path, refusal(403, "User \x1b[31m may not"))
        done = cli(*arguments, "--kubeconfig", kubeconfig)
    assert_error(done, 1, "403", r"User \x1b[31m may not")
    assert any(kind.resource in done.stderr for kind in (KUBEVIRT, LEASE))
    assert "\x1b" not in done.stderr


def test_cluster_without_kubevirt_is_told_from_an_empty_one(cli: Cli, kubeconfig: Path) -> None:
    with ApiServer() as server:
        write_kubeconfig(kubeconfig, server.url)
        done = cli("plan", "--kubeconfig", kubeconfig)
    assert_error(done, 1, "404", KUBEVIRT.resource)


def test_plan_is_made_without_the_load_that_prometheus_refuses_to_tell(
    cli: Cli, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ApiServer() as server:
        write_kubeconfig(kubeconfig, server.url)
        for kind in SNAPSHOT_KINDS:
            server.on_list(kind.path())
        monkeypatch.setenv("REBALANCER_PROMETHEUS__URL", f"{server.url}/prometheus")
        server.on("GET", "/prometheus/api/v1/query_range", refusal(403, "\x1b[31mno"))
        done = cli("plan", "--kubeconfig", kubeconfig)
    assert done.code == 0
    assert (
        f"Measured load: measuredLoad.nodeQuery: {server.url}/prometheus: HTTP 403" in done.stdout
    )
    assert "MeasuredLoad" in done.stdout
    assert "\x1b" not in done.stdout
