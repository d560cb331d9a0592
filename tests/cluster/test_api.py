"""Requests are repeated where that is safe, and refusals say what to do."""

from datetime import UTC, datetime, timedelta

import pytest

from rebalancer.cluster.api import Api, ApiError
from rebalancer.cluster.kinds import LEASE, MIGRATION, NODE, POD, VMI
from rebalancer.errors import ClusterError
from tests.cluster.api_server import Answer, ApiServer, refusal

BODY = {"metadata": {"name": "p"}}
PODS = "/api/v1/namespaces/shop/pods"


def test_request_is_made_as_the_api_server_expects_it(server: ApiServer) -> None:
    path = "/apis/kubevirt.io/v1/namespaces/shop/virtualmachineinstances/web"
    server.on("GET", path, Answer(body={"a": 1}))
    assert server.api.get(VMI, "shop", "web") == b'{"a": 1}'
    (asked,) = server.asked
    assert asked.headers["user-agent"] == "kubevirt-rebalancer"
    assert asked.headers["accept"] == "application/json"
    assert asked.headers["accept-encoding"] == "gzip"


def test_token_is_sent(server: ApiServer) -> None:
    server.on("GET", "/api/v1/nodes/n1", Answer())
    configuration = server.configuration
    configuration.api_key["BearerToken"] = "Bearer secret"
    Api(configuration).get(NODE, "", "n1")
    assert server.asked[0].headers["authorization"] == "Bearer secret"


@pytest.mark.usefixtures("pauses")
@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_reading_is_repeated_while_the_server_is_in_trouble(server: ApiServer, status: int) -> None:
    server.on("GET", "/api/v1/nodes", refusal(status, "wait"), Answer(body={"items": []}))
    assert server.api.list_page(NODE, {}) == b'{"items": []}'
    assert len(server.asked) == 2


def test_server_says_how_long_to_wait(server: ApiServer, pauses: list[float]) -> None:
    busy = refusal(429, "too many requests", ("Retry-After", "7"))
    hour = refusal(503, "maintenance", ("Retry-After", "3600"))
    server.on("GET", "/api/v1/nodes", busy, hour, Answer())
    server.api.list_page(NODE, {})
    assert pauses == [7, 30]


def test_reading_ends_when_the_server_stays_in_trouble(
    server: ApiServer, pauses: list[float]
) -> None:
    server.on("GET", "/api/v1/nodes", refusal(503, "etcd has no leader"))
    with pytest.raises(ApiError) as error:
        server.api.list_page(NODE, {})
    assert str(error.value) == (
        "list nodes: HTTP 503: etcd has no leader; try again later; the API server is overloaded"
        " or in trouble"
    )
    assert len(server.asked) == 7
    assert sum(pauses) < 20


@pytest.mark.usefixtures("pauses")
def test_answer_that_breaks_off_is_read_again(server: ApiServer) -> None:
    whole = Answer(body={"items": ["x" * 1000]})
    server.on("GET", "/api/v1/nodes", whole._replace(cut_off=True), whole)
    assert len(server.api.list_page(NODE, {})) > 1000


@pytest.mark.parametrize(
    "answer", [refusal(500, "x"), refusal(429, "x", ("Retry-After", "1")), Answer(cut_off=True)]
)
def test_creating_and_updating_are_never_repeated(server: ApiServer, answer: Answer) -> None:
    server.on("POST", PODS, answer)
    server.on("PUT", f"{PODS}/p", answer)
    with pytest.raises(ClusterError):
        server.api.create(POD, "shop", BODY, {})
    with pytest.raises(ClusterError):
        server.api.update(POD, "shop", "p", BODY)
    assert [asked.method for asked in server.asked] == ["POST", "PUT"]


@pytest.mark.usefixtures("pauses")
def test_deleting_is_repeated(server: ApiServer) -> None:
    server.on("DELETE", f"{PODS}/p", Answer(cut_off=True, body={"a": 1}), Answer())
    server.api.delete(POD, "shop", "p")
    assert len(server.asked) == 2


def test_missing_right_names_verb_and_resource(server: ApiServer) -> None:
    message = (
        'virtualmachineinstancemigrations.kubevirt.io is forbidden: User "u" cannot create resource'
        ' "virtualmachineinstancemigrations" in API group "kubevirt.io" in the namespace "shop"'
    )
    path = "/apis/kubevirt.io/v1/namespaces/shop/virtualmachineinstancemigrations"
    server.on("POST", path, refusal(403, message))
    with pytest.raises(ApiError) as error:
        server.api.create(MIGRATION, "shop", {"metadata": {"name": "m"}}, {})
    assert str(error.value) == (
        f"create virtualmachineinstancemigrations.kubevirt.io shop/m: HTTP 403: {message}; RBAC"
        " must grant the verb create on virtualmachineinstancemigrations.kubevirt.io in namespace"
        " shop"
    )
    assert error.value.status == 403


def test_refusal_by_admission_is_not_taken_for_a_missing_right(server: ApiServer) -> None:
    message = 'pods "p" is forbidden: violates PodSecurity "restricted:latest"'
    server.on("POST", PODS, refusal(403, message))
    with pytest.raises(ApiError) as error:
        server.api.create(POD, "shop", BODY, {})
    assert str(error.value) == f"create pods shop/p: HTTP 403: {message}"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (refusal(401, "Unauthorized"), "HTTP 401: Unauthorized; log in again"),
        (refusal(404, "no"), "HTTP 404: no; KubeVirt is not installed in this cluster"),
        (Answer(302, b"<html>"), "HTTP 302: <html>"),
        (Answer(418, b"\xff"), "HTTP 418: \ufffd"),
        (Answer(418, {"message": 5}), 'HTTP 418: {"message": 5}'),
    ],
)
def test_refusal_says_what_the_server_said(server: ApiServer, answer: Answer, text: str) -> None:
    server.on("GET", "/apis/kubevirt.io/v1/virtualmachineinstances", answer)
    with pytest.raises(ApiError) as error:
        server.api.list_page(VMI, {})
    assert str(error.value).startswith(f"list virtualmachineinstances.kubevirt.io: {text}")


def test_missing_namespace_is_to_be_created(server: ApiServer) -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/rebalancer/leases"
    server.on("POST", path, refusal(404, 'namespaces "rebalancer" not found'))
    with pytest.raises(ApiError, match=r"kubectl create namespace rebalancer$"):
        server.api.create(LEASE, "rebalancer", {"metadata": {"name": "l"}}, {})


@pytest.mark.usefixtures("pauses")
def test_server_that_is_not_there_is_named() -> None:
    with ApiServer() as server:
        api, url = server.api, server.url
    with pytest.raises(ApiError, match="Connection refused") as error:
        api.get(NODE, "", "n1")
    assert str(error.value).startswith(f"get nodes n1: no answer from the API server {url}: ")
    assert "check the address in the kubeconfig" in str(error.value)
    assert error.value.status == 0


def test_credentials_that_cannot_be_had_are_an_error(server: ApiServer) -> None:
    def expired(_: object) -> None:
        raise FileNotFoundError("/var/run/secrets/token")

    configuration = server.configuration
    configuration.api_key["BearerToken"] = "Bearer old"
    configuration.refresh_api_key_hook = expired  # type: ignore[assignment]
    with pytest.raises(ApiError, match="get nodes n1: no credentials: /var/run/secrets/token"):
        Api(configuration).get(NODE, "", "n1")


class TestTime:
    @pytest.mark.parametrize("hours", [-5, 0, 3])
    def test_time_is_the_servers(self, server: ApiServer, hours: int) -> None:
        there = datetime.now(UTC) + timedelta(hours=hours)
        server.date = there.strftime("%a, %d %b %Y %H:%M:%S GMT")
        assert abs(self.after_an_answer(server) - there) < timedelta(minutes=1)

    def test_without_a_readable_date_it_is_ours(self, server: ApiServer) -> None:
        server.date = "yesterday"
        assert abs(self.after_an_answer(server) - datetime.now(UTC)) < timedelta(minutes=1)

    def after_an_answer(self, server: ApiServer) -> datetime:
        server.on("GET", "/api/v1/nodes/n1", Answer())
        api = server.api
        api.get(NODE, "", "n1")
        return api.now()
