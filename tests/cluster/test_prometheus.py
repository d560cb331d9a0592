"""A query gives what Prometheus answers, or one error that says what to do and no secret."""

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rebalancer.cluster import prometheus
from rebalancer.cluster.prometheus import Prometheus, PrometheusError, Series
from rebalancer.policy.measured_load import PrometheusPolicy
from tests.cluster.api_server import Answer, ApiServer
from tests.cluster.prometheus_answers import INSTANT, RANGE, error, matrix, sample, series, vector

TLS = Path(__file__).parent / "tls"


def client(url: str, **settings: Any) -> Prometheus:
    policy = PrometheusPolicy(url=url, **settings)
    assert policy.url is not None
    return Prometheus(policy.url, policy)


def ask(server: ApiServer, **settings: Any) -> list[Series]:
    return client(server.url, **settings).query_range("up", 100, 700, 60)


@pytest.fixture
def tls_server() -> Iterator[ApiServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / "certificate.pem", TLS / "key.pem")
    with ApiServer(context) as running:
        running.on("GET", RANGE, matrix())
        yield running


def test_range_is_asked_for_with_its_step_and_the_time_there_is(server: ApiServer) -> None:
    server.on("GET", RANGE, matrix(series({"instance": "n1"}, (100, "0.5"), (160.25, "NaN"))))
    assert ask(server, timeout_seconds=7) == [
        Series({"instance": "n1"}, ((100.0, "0.5"), (160.25, "NaN")))
    ]
    [asked] = server.asked
    assert asked.query == {
        "query": "up",
        "start": "100.000",
        "end": "700.000",
        "step": "60",
        "timeout": "7s",
    }
    assert asked.headers["user-agent"] == "kubevirt-rebalancer"
    assert "authorization" not in asked.headers


def test_instant_is_asked_for_below_the_path_of_the_address(server: ApiServer) -> None:
    server.on("GET", f"/select/prometheus{INSTANT}", vector(sample("1.5", name="web")))
    [found] = client(f"{server.url}/select/prometheus/").query("x", 100)
    assert (found.metric, found.value) == ({"name": "web"}, (0.0, "1.5"))
    assert server.asked[0].query["time"] == "100.000"


def test_histograms_have_no_values(server: ApiServer) -> None:
    histogram = {"metric": {}, "histograms": [[1, {"count": "1", "sum": "2"}]]}
    server.on("GET", RANGE, matrix(histogram))
    assert ask(server) == [Series({})]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (
            error(400, "bad_data", "1:5: parse error: unexpected identifier"),
            "HTTP 400: bad_data: 1:5: parse error: unexpected identifier; try the queries of"
            " measuredLoad in Prometheus",
        ),
        (
            error(422, "execution", "many-to-many matching not allowed"),
            "HTTP 422: execution: many-to-many matching not allowed; try the queries of"
            " measuredLoad in Prometheus",
        ),
        (
            Answer(401, b"Unauthorized\n"),
            "HTTP 401: Unauthorized; check prometheus.bearerTokenFile and what the token allows",
        ),
        (Answer(404, b"<html>"), "HTTP 404: <html>; does prometheus.url lead to the API"),
        (
            Answer(302, b"", [("Location", "https://elsewhere/login")]),
            "HTTP 302: ; does prometheus.url lead to the API",
        ),
        (Answer(500, b"x" * 1000), "HTTP 500: " + "x" * 300),
        (Answer(204, b""), "HTTP 204: "),
        (Answer(body=b"<html>welcome"), "the answer is not Prometheus's"),
        (Answer(body=b"\xff"), "the answer is not Prometheus's"),
        (Answer(body={"status": "success"}), "the answer is not Prometheus's"),
        (Answer(body=[]), "the answer is not Prometheus's"),
        (Answer(body=b'{"data":' + b"[" * 10**5), "the answer is not Prometheus's"),
        (matrix(series({"a": "b"}, ("now", "1"))), "the answer is not Prometheus's"),  # type: ignore[arg-type]
        (vector(), "the query gives a 'vector', not a matrix with labels"),
        (Answer(body=matrix().body, cut_off=True), "no answer from"),
    ],
)
def test_what_is_no_answer_is_told(server: ApiServer, answer: Answer, text: str) -> None:
    server.on("GET", RANGE, answer)
    with pytest.raises(PrometheusError) as refusal:
        ask(server)
    assert text in str(refusal.value)
    assert len(server.asked) == 1


@pytest.mark.usefixtures("pauses")
def test_query_is_repeated_once_while_prometheus_is_in_trouble(server: ApiServer) -> None:
    busy = error(503, "unavailable", "starting up")
    server.on("GET", RANGE, busy, matrix())
    assert ask(server) == []
    server.on("GET", RANGE, busy)
    with pytest.raises(PrometheusError, match="HTTP 503: unavailable: starting up"):
        ask(server)
    assert len(server.asked) == 4


def test_nobody_there_is_told_with_the_address(pauses: list[float]) -> None:
    with ApiServer() as gone:
        url = gone.url
    with pytest.raises(PrometheusError, match=f"no answer from {url}: .*check prometheus.url"):
        client(url).query("up", 0)
    assert len(pauses) <= 1


def test_answer_that_is_too_large_is_not_read_to_its_end(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prometheus, "LONGEST_ANSWER_BYTES", 2**20)
    endless = [b"x" * 2**16] * 64
    server.on("GET", RANGE, Answer(lines=endless))
    with pytest.raises(PrometheusError, match="the answer is larger than 1 MiB"):
        ask(server)


def test_answer_that_comes_too_slowly_is_given_up(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server sends on, so no pause is ever as long as the timeout."""
    clock = iter(range(0, 1000, 4))
    monkeypatch.setattr(prometheus, "monotonic", lambda: next(clock))
    server.on("GET", RANGE, Answer(lines=[b" "] * 64))
    with pytest.raises(PrometheusError, match=r"longer than prometheus\.timeoutSeconds"):
        ask(server)


class TestToken:
    def test_it_is_sent_as_it_stands_in_the_file_now(
        self, tls_server: ApiServer, tmp_path: Path
    ) -> None:
        file = tmp_path / "token"
        asked = client(tls_server.url, bearer_token_file=file, tls_ca_file=TLS / "certificate.pem")
        for token in ("first", "second"):
            file.write_text(f"{token}\n")
            asked.query_range("up", 0, 60, 60)
        sent = [request.headers["authorization"] for request in tls_server.asked]
        assert sent == ["Bearer first", "Bearer second"]

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            (None, "No such file"),
            (b"", "does not hold a token"),
            (b"secret\r\nX-Evil: 1", "does not hold a token"),
            ("s\u00e9cret".encode(), "does not hold a token"),
            (b"\xffsecret", "is no text"),
        ],
    )
    def test_file_without_a_token_is_named_and_nothing_of_it_shown(
        self, tmp_path: Path, content: bytes | None, problem: str
    ) -> None:
        file = tmp_path / "token"
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(PrometheusError, match=problem) as refusal:
            client("https://prometheus.invalid", bearer_token_file=file).query("up", 0)
        assert "cret" not in str(refusal.value).replace(str(file), "")
        assert str(file) in str(refusal.value)

    def test_it_is_not_shown_when_the_answer_repeats_it(
        self, tls_server: ApiServer, tmp_path: Path
    ) -> None:
        file = tmp_path / "token"
        file.write_text("verysecret")
        tls_server.on("GET", RANGE, Answer(403, b"Bearer verysecret may not"))
        asked = client(tls_server.url, bearer_token_file=file, tls_ca_file=TLS / "certificate.pem")
        with pytest.raises(PrometheusError, match=r"HTTP 403: Bearer \(token\) may not"):
            asked.query_range("up", 0, 60, 60)


class TestTrust:
    def test_certificate_of_nobody_known_is_refused(self, tls_server: ApiServer) -> None:
        with pytest.raises(PrometheusError, match="certificate verify failed"):
            ask(tls_server)

    def test_authorities_are_those_of_the_file(self, tls_server: ApiServer) -> None:
        assert ask(tls_server, tls_ca_file=TLS / "certificate.pem") == []

    @pytest.mark.parametrize("content", [None, "no certificate"])
    def test_file_without_certificates_is_named(self, tmp_path: Path, content: str | None) -> None:
        file = tmp_path / "ca.pem"
        if content is not None:
            file.write_text(content)
        with pytest.raises(PrometheusError, match=r"prometheus\.tlsCaFile .*ca\.pem"):
            client("https://prometheus.invalid", tls_ca_file=file).query("up", 0)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
MATRICES = st.builds(
    lambda result: {"status": "success", "data": {"resultType": "matrix", "result": result}}, JSON
)


@given(JSON | MATRICES)
@example({"data": {"resultType": "matrix", "result": [{"metric": {"a": "b"}, "values": [[1]]}]}})
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_answer_is_a_result_or_told(server: ApiServer, body: object) -> None:
    server.on("GET", RANGE, Answer(body=body))
    try:
        found = ask(server)
    except PrometheusError:
        return
    assert all(isinstance(each, Series) for each in found)
