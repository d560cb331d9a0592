"""Load that a real Prometheus has collected, as part of a live snapshot."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rebalancer.cluster.api import Api
from rebalancer.cluster.config import load_config
from rebalancer.cluster.live import LiveCluster
from rebalancer.cluster.measured_load import LoadReader
from rebalancer.cluster.prometheus import Prometheus as Client
from rebalancer.model.measured_load import MeasuredLoad
from rebalancer.model.snapshot import Snapshot
from rebalancer.planning.measured_load import node_loads
from rebalancer.policy.measured_load import MeasuredLoadPolicy, PrometheusPolicy
from tests.builders import key
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.exporter import Exporter, Metric
from tests.controlplane.prometheus import Prometheus
from tests.controlplane.scenario import BLUE, CORDONED, GREEN, RED, VMS
from tests.controlplane.waiting import wait_for
from tests.e2e.cluster_view import NAMESPACE
from tests.e2e.command import rebalancer

HOSTILE = 'w9"} 1\n\\x{\x1b[31m' + "\u2603" * 1000
IDLE = {GREEN: 0.05, BLUE: 0.6, RED: 0.95}
WAITING = {GREEN: 0.3, BLUE: 0.02, HOSTILE: 0.9}
CORES_USED = {VMS[GREEN][0]: 1.25, VMS[GREEN][1]: 0.5, HOSTILE: 8.0}


def metrics() -> Iterator[Metric]:
    """As node_exporter and virt-handler have them; the kernel's counters are in seconds."""
    for node, idle in {**IDLE, HOSTILE: 0.5}.items():
        for cpu in ("0", "1"):
            labels = {"instance": f"{node}:9100", "cpu": cpu}
            yield Metric("node_cpu_seconds_total", {**labels, "mode": "idle"}, 1e6, idle)
            yield Metric("node_cpu_seconds_total", {**labels, "mode": "user"}, 1e6, 1 - idle)
    for node, share in WAITING.items():
        name = "node_pressure_cpu_waiting_seconds_total"
        yield Metric(name, {"node": node, "pod": HOSTILE}, 1e4, share)
    for vm, cores in CORES_USED.items():
        labels = {"namespace": "default", "name": vm, "node": GREEN}
        yield Metric("kubevirt_vmi_cpu_usage_seconds_total", labels, 1e3, cores)
    for node, value in ((GREEN, 0.5), (BLUE, float("nan")), (RED, float("inf")), (CORDONED, 37.0)):
        yield Metric("memory_share", {"node": node}, value)


@pytest.fixture(scope="module")
def prometheus(prometheus_program: Path) -> Iterator[Prometheus]:
    with (
        Exporter(*metrics()) as exporter,
        Prometheus(prometheus_program, exporter.address) as running,
    ):
        yield running


def quickly(query: str) -> str:
    """The same over two seconds, since that is how long the test wants to wait."""
    return query.replace("[5m]", "[2s]")


def policy(**fields: Any) -> MeasuredLoadPolicy:
    """With a reading each second, of which three make a node a hot one."""
    return MeasuredLoadPolicy(window_seconds=4, step_seconds=1, hot_after_readings=3, **fields)


USUAL = MeasuredLoadPolicy()
BY_CPU = policy(node_query=quickly(USUAL.node_query), vm_query=quickly(str(USUAL.vm_query)))
BY_PRESSURE = policy(
    node_query=BY_CPU.node_query,
    pressure_query="sum by (instance) (label_replace("
    'rate(node_pressure_cpu_waiting_seconds_total[2s]), "instance", "$1", "node", "(.*)"))',
    vm_query=None,
)
BY_MEMORY = policy(resource="memory", node_query="memory_share", node_label="node", vm_query=None)


def live(plane: ControlPlane, prometheus: Prometheus, policy: MeasuredLoadPolicy) -> LiveCluster:
    client = Client(prometheus.url, PrometheusPolicy(url=prometheus.url))
    api = Api(load_config(plane.kubeconfig(), None))
    return LiveCluster(api, NAMESPACE, "me", LoadReader(client, policy))


def measured(snapshot: Snapshot) -> MeasuredLoad:
    assert snapshot.measured_load is not None
    return snapshot.measured_load


def test_nodes_and_vms_are_measured_by_the_usual_queries(
    request_cluster: ControlPlane, prometheus: Prometheus
) -> None:
    cluster = live(request_cluster, prometheus, BY_CPU)
    snapshot = wait_for(
        cluster.read,
        lambda read: (
            len(node_loads(read, BY_CPU).by_node) == len(IDLE)
            and measured(read).usage.get(key(VMS[GREEN][0]), 0) > 1200
        ),
        "three readings of each node, and a range that VMs have been running for all of it",
    )
    loads = node_loads(snapshot, BY_CPU)
    assert {name: load.share for name, load in loads.by_node.items()} == {
        name: pytest.approx(1 - idle, abs=0.05) for name, idle in IDLE.items()
    }
    assert [name for name, load in loads.by_node.items() if load.is_hot(0.8)] == [GREEN]
    assert {reason.code for reason in loads.left_out} == {"no-readings"}
    assert CORDONED in {reason.node for reason in loads.left_out}
    assert measured(snapshot).usage == {
        key(vm): pytest.approx(cores * 1000, rel=0.05)
        for vm, cores in CORES_USED.items()
        if vm != HOSTILE
    }
    assert snapshot.missing == ()


def test_nodes_can_be_judged_by_pressure(
    request_cluster: ControlPlane, prometheus: Prometheus
) -> None:
    cluster = live(request_cluster, prometheus, BY_PRESSURE)
    snapshot = wait_for(
        cluster.read,
        lambda read: (
            [bool(load.latest_pressure) for load in node_loads(read, BY_PRESSURE).by_node.values()]
            == [True, True, False]
        ),
        "three readings of each node, and of the pressure of two of them",
    )
    loads = node_loads(snapshot, BY_PRESSURE).by_node
    assert {name for name, load in loads.items() if load.is_under_pressure(0.1)} == {GREEN}


def test_values_that_are_no_shares_leave_their_node_out(
    request_cluster: ControlPlane, prometheus: Prometheus
) -> None:
    snapshot = wait_for(
        live(request_cluster, prometheus, BY_MEMORY).read,
        lambda read: GREEN in node_loads(read, BY_MEMORY).by_node,
        "three readings of a node",
    )
    loads = node_loads(snapshot, BY_MEMORY)
    assert list(loads.by_node) == [GREEN]
    reasons = {reason.node: reason.code for reason in loads.left_out}
    assert reasons[BLUE] == "no-readings"
    assert reasons[RED] == reasons[CORDONED] == "unusable-readings"


WRONG_QUERIES = {
    "1 - rate(": "HTTP 400: bad_data: ",
    "node_cpu_seconds_total[5m]": "HTTP 400: bad_data: ",
    "up / on(job) memory_share": "HTTP 422: execution: found duplicate series",
    "1": "their label instance is missing",
    "nothing_like_it": "gives nothing",
}


def test_wrong_query_is_told_in_the_words_of_prometheus(
    request_cluster: ControlPlane, prometheus: Prometheus
) -> None:
    def problem(query: str) -> str:
        asking = live(request_cluster, prometheus, policy(node_query=query))
        return measured(asking.read()).problem

    wait_for(
        lambda: {query: problem(query) for query in WRONG_QUERIES},
        lambda problems: all(text in problems[query] for query, text in WRONG_QUERIES.items()),
        "each query to be refused",
    )


def test_pending_vm_is_planned_for_without_prometheus(
    pending_vm: ControlPlane, prometheus: Prometheus
) -> None:
    """The same plan with it, without it, and where there is none."""
    variable = "REBALANCER_PROMETHEUS__URL"
    environments: tuple[dict[str, str], ...] = (
        {},
        {variable: prometheus.url},
        {variable: f"{prometheus.url}/elsewhere"},
    )
    plans = [
        rebalancer("plan", "-o", "json", kubeconfig=pending_vm.kubeconfig(), env=env).document
        for env in environments
    ]
    assert len({plan["id"] for plan in plans}) == 1
    assert all(plan["moves"] for plan in plans)
    assert plans[0]["snapshot"]["missing"] == []
    assert plans[2]["snapshot"]["missing"] == ["MeasuredLoad"]


def test_vms_leave_the_node_that_prometheus_shows_to_be_hot(
    request_cluster: ControlPlane, prometheus: Prometheus, tmp_path: Path
) -> None:
    """By requests the three workers are far below what makes a node hot."""
    spread = {"headroom": {"failureDomain": "None"}, "balance": {"by": "MeasuredLoad"}}
    document = {
        "apiVersion": "rebalancer/v1alpha1",
        "kind": "RebalancerPolicy",
        "prometheus": {"url": prometheus.url},
        "measuredLoad": BY_CPU.model_dump(mode="json", by_alias=True),
        "strategies": {"SpreadHeadroom": {"mode": "Recommend", "settings": spread}},
    }
    file = tmp_path / "policy.yaml"
    file.write_text(json.dumps(document))  # JSON is YAML.
    arguments = ("plan", "--policy", str(file), "-o", "json")
    kubeconfig = request_cluster.kubeconfig()

    def planned() -> dict[str, Any]:
        return rebalancer(*arguments, kubeconfig=kubeconfig).document

    plan = wait_for(planned, lambda plan: bool(plan["moves"]), "a plan by measured load")
    assert {move["source"] for move in plan["moves"]} == {GREEN}
    assert {goal["strategy"] for goal in plan["goals"] if goal["moves"]} == {"SpreadHeadroom"}
    assert plan["moves"][0]["target"] == RED
