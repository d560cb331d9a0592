"""The kubeconfig decides which cluster it is and whom to trust; nothing around it interferes."""

import base64
import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rebalancer.cluster.api import Api, ApiError
from rebalancer.cluster.config import load_config
from rebalancer.cluster.kinds import NODE
from rebalancer.errors import InputError
from tests.cluster.api_server import Answer, ApiServer

TLS = Path(__file__).parent / "tls"
"""A self-signed certificate for 127.0.0.1 with its key, made for these tests alone."""


@pytest.fixture(autouse=True)
def _nobody_is_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def tls_server() -> Iterator[ApiServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / "certificate.pem", TLS / "key.pem")
    with ApiServer(context) as running:
        running.on("GET", "/api/v1/nodes/n1", Answer(body={"a": 1}))
        yield running


def write(file: Path, server: str = "https://first", **cluster: Any) -> Path:
    """A kubeconfig with contexts `first` and `second`."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "first", "cluster": {"server": server, **cluster}},
            {"name": "second", "cluster": {"server": "https://second"}},
        ],
        "users": [{"name": "me", "user": {"token": "secret"}}],
        "contexts": [
            {"name": name, "context": {"cluster": name, "user": "me"}}
            for name in ("first", "second")
        ],
        "current-context": "first",
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content))
    return file


class TestChoice:
    def test_given_kubeconfig_and_context_win(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("KUBECONFIG", str(write(tmp_path / "other", "https://other")))
        given = write(tmp_path / "given")
        assert load_config(given, None).host == "https://first"
        assert load_config(given, "second").host == "https://second"

    def test_kubeconfig_of_the_environment_wins_over_the_default(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(tmp_path / "home/.kube/config", "https://default")
        assert load_config(None, None).host == "https://default"
        other = write(tmp_path / "other", "https://other")
        monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'missing'}:{other}")
        assert load_config(None, None).host == "https://other"

    def test_pod_of_a_cluster_uses_its_service_account(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
        for name, content in (("TOKEN", "secret"), ("CERT", "certificate")):
            file = tmp_path / name
            file.write_text(content)
            constant = f"kubernetes.config.incluster_config.SERVICE_{name}_FILENAME"
            monkeypatch.setattr(constant, str(file))
        configuration = load_config(None, None)
        assert configuration.host == "https://10.0.0.1:443"
        assert configuration.api_key == {"BearerToken": "bearer secret"}

    def test_nowhere_to_go_says_what_to_do(self) -> None:
        with pytest.raises(InputError, match=r"no cluster: .* name a kubeconfig, or read a dump"):
            load_config(None, None)

    def test_context_without_a_kubeconfig_is_an_error(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
        with pytest.raises(InputError, match="context blue: there is no kubeconfig"):
            load_config(None, "blue")

    def test_missing_kubeconfig_is_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        missing = tmp_path / "missing"
        with pytest.raises(InputError, match=f"kubeconfig {missing}: no such file"):
            load_config(missing, None)
        monkeypatch.setenv("KUBECONFIG", str(missing))
        with pytest.raises(InputError, match=f"KUBECONFIG={missing}: no such file"):
            load_config(None, None)

    @pytest.mark.parametrize("content", ["", "a: [", "[]", "a: 1", '{"clusters": 5}', "\x00"])
    def test_kubeconfig_that_cannot_be_used_is_named(self, tmp_path: Path, content: str) -> None:
        file = tmp_path / "config"
        file.write_text(content)
        with pytest.raises(InputError, match=f"kubeconfig {file}: "):
            load_config(file, None)

    def test_unknown_context_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="blue"):
            load_config(write(tmp_path / "config"), "blue")


class TestTrust:
    @pytest.fixture(autouse=True)
    def _machine_trusts_others(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        nobody = tmp_path / "nobody.pem"
        nobody.write_text("")
        for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"):
            monkeypatch.setenv(name, str(nobody))
        monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))

    def api(self, file: Path) -> Api:
        return Api(load_config(file, None))

    def test_authority_of_the_kubeconfig_is_trusted_whatever_the_machine_trusts(
        self, tmp_path: Path, tls_server: ApiServer
    ) -> None:
        data = base64.b64encode((TLS / "certificate.pem").read_bytes()).decode()
        config = write(tmp_path / "c", tls_server.url, **{"certificate-authority-data": data})
        assert self.api(config).get(NODE, "", "n1") == b'{"a": 1}'
        assert tls_server.asked[0].headers["authorization"] == "Bearer secret"

    @pytest.mark.usefixtures("pauses")
    def test_server_that_is_not_trusted_is_not_told_the_token(
        self, tmp_path: Path, tls_server: ApiServer
    ) -> None:
        config = write(tmp_path / "c", tls_server.url)
        with pytest.raises(ApiError, match="get nodes n1: no trust in the API server") as error:
            self.api(config).get(NODE, "", "n1")
        assert "check certificate-authority" in str(error.value)
        assert tls_server.asked == []
