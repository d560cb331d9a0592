"""What Prometheus answers becomes the load of nodes and the usage of VMs, or says why not."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rebalancer.cluster.measured_load import LoadReader
from rebalancer.cluster.prometheus import Prometheus
from rebalancer.model.keys import HOSTNAME
from rebalancer.model.measured_load import MeasuredLoad
from rebalancer.model.objects import Node
from rebalancer.policy.measured_load import MeasuredLoadPolicy, PrometheusPolicy
from tests.builders import NOW, cluster, key, node, vm
from tests.cluster.api_server import Answer, ApiServer
from tests.cluster.prometheus_answers import (
    INSTANT,
    RANGE,
    Json,
    error,
    matrix,
    sample,
    series,
    vector,
)

END = NOW.timestamp()
NODES = (node("n1"), node("n2"))


@pytest.fixture(autouse=True)
def _nobody_is_measured_yet(server: ApiServer) -> None:
    server.on("GET", RANGE, matrix())
    server.on("GET", INSTANT, vector())


def measure(
    server: ApiServer, *answers: Json, nodes: Sequence[Node] = NODES, **policy: Any
) -> MeasuredLoad:
    """Of a cluster with a VM `a`, which node series are answered for."""
    if answers:
        server.on("GET", RANGE, matrix(*answers))
    reader = LoadReader(
        Prometheus(server.url, PrometheusPolicy(url=server.url)), MeasuredLoadPolicy(**policy)
    )
    return reader.read(cluster(*nodes, vm("a", on=nodes[0].name)))


def of(instance: str, *values: tuple[float, str]) -> Json:
    return series({"instance": instance}, *(values or ((END, "0.5"),)))


def shares(load: MeasuredLoad) -> Mapping[str, list[float]]:
    return {name: [reading.share for reading in found] for name, found in load.readings.items()}


def test_window_ends_when_the_snapshot_was_taken(server: ApiServer) -> None:
    load = measure(server, of("n1"), window_seconds=300, step_seconds=30, node_query="busy")
    assert load.measured_at == NOW
    ranges, instant = (asked.query for asked in server.asked)
    assert (ranges["query"], ranges["step"]) == ("busy", "30")
    assert float(ranges["start"]) == END - 300
    assert float(ranges["end"]) == float(instant["time"]) == END


def test_readings_are_in_the_order_of_time_and_within_the_window(server: ApiServer) -> None:
    values = ((END, "0.3"), (END - 60, "0.2"), (END - 601, "0.1"), (END + 1, "0.4"))
    assert shares(measure(server, of("n1", *values))) == {"n1": [0.2, 0.3]}


@pytest.mark.parametrize(
    "called",
    [
        "n1",
        "n1:9100",
        "n1.example.com",
        "n1.example.com:9100",
        "10.0.0.1",
        "10.0.0.1:9100",
        "fd00::1",
        "[fd00::1]:9100",
    ],
)
def test_node_is_known_by_name_hostname_and_address(server: ApiServer, called: str) -> None:
    first = node(
        "n1",
        labels={HOSTNAME: "n1.example.com"},
        internal_addresses=("10.0.0.1", "fd00::1"),
    )
    load = measure(server, of(called), nodes=(first, node("n2")))
    assert list(load.readings) == ["n1"]


def test_name_of_a_node_is_not_taken_for_the_hostname_of_another(server: ApiServer) -> None:
    swapped = (node("n1", labels={HOSTNAME: "n2"}), node("n2", labels={HOSTNAME: "n1"}))
    load = measure(server, of("n1", (END, "0.1")), of("n2", (END, "0.2")), nodes=swapped)
    assert shares(load) == {"n1": [0.1], "n2": [0.2]}


def test_what_two_nodes_are_called_is_neither_of_them(server: ApiServer) -> None:
    twins = tuple(node(name, internal_addresses=("10.0.0.1",)) for name in ("n1", "n2"))
    load = measure(server, of("10.0.0.1:9100"), of("n2"), nodes=twins)
    assert list(load.readings) == ["n2"]


@pytest.mark.parametrize(
    ("text", "share"),
    [("0", 0.0), ("-0.01", 0.0), ("1.02", 1.0), ("1", 1.0), ("5e-324", 5e-324)],
)
def test_share_that_rate_has_pushed_past_the_ends_is_cut(
    server: ApiServer, text: str, share: float
) -> None:
    assert shares(measure(server, of("n1", (END, text)))) == {"n1": [share]}


def test_what_is_not_a_number_is_no_reading(server: ApiServer) -> None:
    assert shares(measure(server, of("n1", (END - 60, "NaN"), (END, "0.5")))) == {"n1": [0.5]}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("37.5", "'37.5' is no share from 0 to 1; does the query give a percentage or an amount?"),
        ("+Inf", "'+Inf' is no share from 0 to 1"),
        ("-Inf", "'-Inf' is no share from 0 to 1"),
        ("-1", "'-1' is no share from 0 to 1"),
        ("busy", "'busy' is no number"),
        ("x" * 10**6, "'" + "x" * 80 + "' is no number"),
    ],
)
def test_node_with_readings_that_are_no_shares_is_left_out(
    server: ApiServer, text: str, problem: str
) -> None:
    load = measure(server, of("n1", (END - 60, "0.5"), (END, text)), of("n2"))
    assert list(load.readings) == ["n2"]
    assert load.left_out["n1"].startswith(f"measuredLoad.nodeQuery: {problem}")
    assert load.problem == ""


def test_node_with_two_series_is_left_out(server: ApiServer) -> None:
    load = measure(server, of("n1"), of("n1:9100"), of("n2"))
    why = "measuredLoad.nodeQuery: 2 series are of this node; aggregate them in the query"
    assert load.left_out == {"n1": why}
    assert list(load.readings) == ["n2"]


@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        (None, "measuredLoad.nodeQuery: gives nothing; try it in Prometheus"),
        ({"instance": "w9:9100"}, "their label instance is 'w9:9100', which is no node, see"),
        ({"instance": "\x1b[2J" * 99}, r"their label instance is '\x1b[2J"),
        ({"node": "n1"}, "their label instance is missing, see measuredLoad.nodeLabel"),
    ],
)
def test_query_that_finds_no_node_is_a_problem(
    server: ApiServer, labels: dict[str, str] | None, problem: str
) -> None:
    load = measure(server, *([] if labels is None else [series(labels, (END, "1"))]))
    assert problem in load.problem
    assert len(load.problem) < 600
    assert not load.readings


def test_label_of_the_node_can_be_another(server: ApiServer) -> None:
    load = measure(server, series({"node": "n1"}, (END, "0.5")), node_label="node")
    assert list(load.readings) == ["n1"]


class TestPressure:
    def test_it_is_asked_for_like_load(self, server: ApiServer) -> None:
        load = measure(server, of("n1", (END, "0.25")), pressure_query="waiting")
        assert load.pressure == load.readings
        assert [asked.query["query"] for asked in server.asked[:2]][1] == "waiting"

    def test_without_a_query_it_is_not_known(self, server: ApiServer) -> None:
        assert measure(server, of("n1")).pressure == {}

    def test_a_node_whose_pressure_is_no_share_is_left_out(self, server: ApiServer) -> None:
        load = measure(server, of("n1", (END, "37")), of("n2"), pressure_query="waiting")
        assert load.left_out["n1"].startswith("measuredLoad.pressureQuery: '37' is no share")
        assert list(load.readings) == list(load.pressure) == ["n2"]


class TestUsage:
    @pytest.mark.parametrize(
        ("text", "amount"),
        [
            ("1.5", 1500),
            ("0", 0),
            ("0.0001", 1),
            ("NaN", None),
            ("+Inf", None),
            ("-1", None),
            ("1e300", None),
            ("much", None),
        ],
    )
    def test_cores_become_millicores(
        self, server: ApiServer, text: str, amount: int | None
    ) -> None:
        server.on("GET", INSTANT, vector(sample(text, namespace="default", name="a")))
        found = measure(server, of("n1")).usage
        assert found == ({} if amount is None else {key("a"): amount})

    def test_memory_stays_bytes(self, server: ApiServer) -> None:
        server.on("GET", INSTANT, vector(sample("1024.5", namespace="default", name="a")))
        load = measure(server, of("n1"), resource="memory", node_query="memory", vm_query="memory")
        assert (load.resource, load.usage) == ("memory", {key("a"): 1025})

    def test_only_vms_with_one_sample_have_been_measured(self, server: ApiServer) -> None:
        histogram = {"metric": {"namespace": "default", "name": "a"}, "histogram": [0, {}]}
        twice = sample("1", namespace="default", name="a", node="n1")
        strangers = (sample("1", namespace="other", name="a"), sample("1"))
        for samples in ([], [histogram], [twice, {**twice}], strangers):
            server.on("GET", INSTANT, vector(*samples))
            load = measure(server, of("n1"))
            assert (load.usage, load.problem) == ({}, "")

    def test_vms_are_not_asked_about_without_a_query(self, server: ApiServer) -> None:
        assert measure(server, of("n1"), vm_query=None).usage == {}
        assert [asked.path for asked in server.asked] == [RANGE]


@pytest.mark.parametrize(("path", "query"), [(RANGE, "nodeQuery"), (INSTANT, "vmQuery")])
def test_refusal_names_the_query_and_leaves_nothing_measured(
    server: ApiServer, path: str, query: str
) -> None:
    server.on("GET", RANGE, matrix(of("n1")))
    server.on("GET", path, error(400, "bad_data", "parse error"))
    load = measure(server)
    assert load.problem.startswith(f"measuredLoad.{query}: {server.url}: HTTP 400: bad_data: parse")
    assert (load.readings, load.usage) == ({}, {})


LABELS = st.dictionaries(
    st.sampled_from(["instance", "node", "namespace", "name"]),
    st.sampled_from(["n1", "n2", "n1:1", "a", "default", "", "[", "]:1", ":0"]) | st.text(),
)
VALUES = st.lists(
    st.tuples(
        st.floats(END - 700, END + 100) | st.floats(allow_nan=False, allow_infinity=False),
        st.sampled_from(["0.5", "1", "NaN", "+Inf", "-Inf", "101", ""]) | st.text(),
    ),
    max_size=4,
)


@given(st.lists(st.builds(lambda labels, values: series(labels, *values), LABELS, VALUES)))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_whatever_is_answered_only_shares_of_known_nodes_within_the_window_are_kept(
    server: ApiServer, answers: list[Json]
) -> None:
    server.on("GET", RANGE, matrix(*answers))
    samples = [sample(v[0][1], **s["metric"]) for s in answers if (v := s["values"])]
    server.on("GET", INSTANT, vector(*samples))
    load = measure(server)
    assert {*load.readings, *load.left_out} <= {"n1", "n2"}
    assert not load.readings.keys() & load.left_out.keys()
    readings = [reading for found in load.readings.values() for reading in found]
    assert all(0 <= reading.share <= 1 for reading in readings)
    assert all(END - 600 <= reading.at.timestamp() <= END for reading in readings)
    assert bool(load.problem) == (not load.readings and not load.left_out)
    assert load.usage.keys() <= {key("a")}


def test_slow_prometheus_is_given_up_after_the_timeout(server: ApiServer) -> None:
    """The answer never ends, so only the timeout can."""
    server.on("GET", RANGE, Answer(lines=[]))
    policy = PrometheusPolicy(url=server.url, timeout_seconds=1)
    load = LoadReader(Prometheus(server.url, policy), MeasuredLoadPolicy()).read(cluster(*NODES))
    assert "timed out" in load.problem.lower()
