"""One trace per cycle, found in the real Jaeger."""

import socket
from collections.abc import Mapping
from typing import Any

import pytest

from tests.controlplane.api import Api, path_of
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.jaeger import Jaeger
from tests.e2e.command import rebalancer

Span = dict[str, Any]
PHASES = {"Scheduling", "Scheduled", "TargetReady", "Running", "Succeeded"}


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
def test_the_whole_cycle_is_one_trace(
    pending_vm: ControlPlane, api: Api, jaeger: Jaeger, protocol: str
) -> None:
    service = f"rebalancer-{protocol.replace('/', '-')}"
    endpoints = {"grpc": jaeger.otlp_grpc_endpoint, "http/protobuf": jaeger.otlp_http_endpoint}
    env = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": endpoints[protocol],
        "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
        "OTEL_SERVICE_NAME": service,
    }
    done = rebalancer("run", "-o", "json", kubeconfig=pending_vm.kubeconfig(), env=env)
    assert done.code == 0, done.stderr

    (trace,) = jaeger.query(service)
    (migration,) = api.list(path_of("virtualmachineinstancemigrations"))
    assert migration["metadata"]["annotations"]["rebalancer/trace-id"] == trace["traceID"]

    spans = {span["operationName"]: span for span in trace["spans"]}
    (move,) = done.document["plan"]["moves"]
    moving = f"move {move['namespace']}/{move['name']}"
    assert parents(trace) == {
        "cycle": None,
        "snapshot": "cycle",
        "strategy FitPendingVMs": "cycle",
        "solve": "strategy FitPendingVMs",
        "strategy ConsolidateForDrain": "cycle",
        "plan": "cycle",
        moving: "plan",
        **dict.fromkeys(PHASES & set(spans), moving),
        **{name: moving for name in spans if name in {"Pending", "PreparingTarget"}},
        "beneficiary bound": "plan",
    }
    assert set(spans) >= PHASES
    tags = tags_of(spans[moving])
    assert tags["rebalancer.target"] == move["target"]
    assert tags["rebalancer.bytes"] == move["bytes"]
    assert tags["rebalancer.cost"] == move["cost"]
    assert tags["rebalancer.outcome"] == "succeeded"
    assert tags["otel.status_code"] == "OK"


def parents(trace: Mapping[str, Any]) -> dict[str, str | None]:
    """Name of each span's parent span."""
    names = {span["spanID"]: span["operationName"] for span in trace["spans"]}
    found: dict[str, str | None] = {}
    for span in trace["spans"]:
        references = span.get("references", [])
        found[span["operationName"]] = names[references[0]["spanID"]] if references else None
    return found


def tags_of(span: Span) -> dict[str, Any]:
    return {tag["key"]: tag["value"] for tag in span["tags"]}


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
def test_a_collector_that_is_down_changes_nothing(pending_vm: ControlPlane, protocol: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    env = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
        "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
    }
    done = rebalancer("run", kubeconfig=pending_vm.kubeconfig(), env=env)
    assert done.code == 0, done.stderr
    assert "is bound to" in done.stderr
