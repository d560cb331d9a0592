"""Waiting ends at a change, or at the end of the time; faults only cost time."""

import threading
from collections.abc import Iterator

import pytest

from rebalancer.cluster.live import LiveCluster
from rebalancer.model.objects import ObjectKey
from tests.cluster import wire_builders as wire
from tests.cluster.api_server import Answer, ApiServer, refusal
from tests.cluster.test_live import KUBEVIRT, MIGRATIONS, NODES, NOTHING_OF, PODS, VMIS, WEB

LONG = 60.0
"""No test waits this long, as what it waits for happens; the run's own limit tells if not."""


@pytest.fixture
def cluster(server: ApiServer) -> LiveCluster:
    """One that has read VMI shop/web with its pods at version 30, and migrations at 20."""
    for path in (f"{KUBEVIRT}/kubevirts", "/api/v1/namespaces", *NOTHING_OF):
        server.on_list(path)
    server.on_list(NODES, wire.node("n1"))
    server.on_list(VMIS, wire.vmi("web"))
    server.on_list(MIGRATIONS, version="20")
    server.on_list(PODS, version="30")
    made = LiveCluster(server.api, "rebalancer", "me")
    made.read()
    server.asked.clear()
    silent = Answer(lines=[])
    server.on("GET", MIGRATIONS, silent)
    server.on("GET", PODS, silent)
    return made


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    yield
    left = [thread.name for thread in threading.enumerate() if thread.name.startswith("watch ")]
    assert left == []


def event(type_: str, item: wire.Json, version: str = "21") -> wire.Json:
    item["metadata"]["resourceVersion"] = version
    return {"type": type_, "object": item}


def test_change_of_a_migration_ends_the_wait(cluster: LiveCluster, server: ApiServer) -> None:
    change = event("MODIFIED", wire.migration("m", "web"))
    server.on("GET", MIGRATIONS, Answer(lines=[change]))
    cluster.wait_for_change([WEB], LONG)


def test_change_of_a_launcher_pod_ends_the_wait(cluster: LiveCluster, server: ApiServer) -> None:
    server.on("GET", PODS, Answer(lines=[event("DELETED", wire.launcher("web"))]))
    cluster.wait_for_change([WEB], LONG)


def test_what_is_watched_starts_where_the_reading_ended(
    cluster: LiveCluster, server: ApiServer
) -> None:
    server.on("GET", PODS, Answer(lines=[event("ADDED", wire.launcher("web"))]))
    cluster.wait_for_change([WEB], LONG)
    assert server.queries(MIGRATIONS) == [
        {"watch": "1", "timeoutSeconds": "61", "resourceVersion": "20"}
    ]
    assert server.queries(PODS) == [
        {
            "watch": "1",
            "timeoutSeconds": "61",
            "resourceVersion": "30",
            "labelSelector": "kubevirt.io/created-by in (web-uid)",
        }
    ]


def test_same_change_does_not_end_the_next_wait(cluster: LiveCluster, server: ApiServer) -> None:
    change = event("MODIFIED", wire.migration("m", "web"), version="25")
    server.on("GET", MIGRATIONS, Answer(lines=[change]))
    cluster.wait_for_change([WEB], LONG)
    cluster.wait_for_change([WEB], 0.1)
    assert [query["resourceVersion"] for query in server.queries(MIGRATIONS)] == ["20", "25"]


def test_change_in_the_middle_of_noise_is_seen(cluster: LiveCluster, server: ApiServer) -> None:
    lines = [
        b"",
        b"<html>not an event</html>",
        {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "22"}}},
        {"type": "ERROR", "object": {"kind": "Status", "metadata": {}, "code": 500}},
        {"type": "MODIFIED", "object": {"spec": {"vmiName": "web"}}},
        event("MODIFIED", wire.migration("m", "another")),
        event("MODIFIED", wire.migration("m", "web", namespace="elsewhere")),
        event("MODIFIED", wire.migration("m", "web")),
    ]
    server.on("GET", MIGRATIONS, Answer(lines=lines))
    cluster.wait_for_change([WEB], LONG)


@pytest.mark.parametrize(
    "answer",
    [
        refusal(403, "forbidden"),
        refusal(410, "too old resource version"),
        refusal(500, "etcd"),
        Answer(lines=[], cut_off=True),
        Answer(lines=[{"type": "ERROR", "object": {"metadata": {}, "code": 410}}], cut_off=True),
        Answer(body=b"garbage\n"),
    ],
)
def test_lost_watch_ends_the_wait_and_is_not_asked_for_again(
    cluster: LiveCluster, server: ApiServer, answer: Answer
) -> None:
    server.on("GET", MIGRATIONS, answer)
    cluster.wait_for_change([WEB], LONG)
    assert len(server.queries(MIGRATIONS)) == 1


def test_server_that_is_gone_ends_the_wait() -> None:
    with ApiServer() as server:
        cluster = LiveCluster(server.api, "rebalancer", "me")
    cluster.wait_for_change([WEB], LONG)


@pytest.mark.parametrize("seconds", [0, 0.1])
def test_wait_ends_without_any_change(cluster: LiveCluster, seconds: float) -> None:
    cluster.wait_for_change([WEB], seconds)


def test_vmi_that_is_not_known_has_its_migrations_watched(
    cluster: LiveCluster, server: ApiServer
) -> None:
    change = event("ADDED", wire.migration("m", "new"))
    server.on("GET", MIGRATIONS, Answer(lines=[change]))
    cluster.wait_for_change([ObjectKey("shop", "new")], LONG)
    assert server.queries(PODS) == []
