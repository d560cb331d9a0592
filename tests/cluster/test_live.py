"""A live cluster is read consistently and changed only as asked."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from rebalancer.cluster.live import LiveCluster
from rebalancer.cluster.manifests import lock_pod_manifest
from rebalancer.cluster.measured_load import LoadReader
from rebalancer.cluster.prometheus import Prometheus
from rebalancer.cluster.protocols import Cluster, Hold, MigrationRequest, Notice
from rebalancer.errors import (
    ClusterError,
    ConflictError,
    RebalancerError,
    RefusedError,
    UnreadableObjectError,
)
from rebalancer.model.objects import ObjectKey
from rebalancer.model.plan import Subject
from rebalancer.policy.measured_load import MeasuredLoadPolicy, PrometheusPolicy
from tests.cluster import wire_builders as wire
from tests.cluster.api_server import Answer, ApiServer, Asked, refusal
from tests.cluster.prometheus_answers import INSTANT, RANGE, matrix, sample, series, vector
from tests.cluster.wire_builders import Json

KUBEVIRT = "/apis/kubevirt.io/v1"
NODES, PODS = "/api/v1/nodes", "/api/v1/pods"
VMIS = f"{KUBEVIRT}/virtualmachineinstances"
MIGRATIONS = f"{KUBEVIRT}/virtualmachineinstancemigrations"
SHOP_MIGRATIONS = f"{KUBEVIRT}/namespaces/shop/virtualmachineinstancemigrations"
SHOP_EVENTS = "/api/v1/namespaces/shop/events"
LOCKS = "/api/v1/namespaces/rebalancer/pods"
WEB = ObjectKey("shop", "web")
MIGRATION_POLICIES = "/apis/migrations.kubevirt.io/v1alpha1/migrationpolicies"
NETWORK_ATTACHMENTS = "/apis/k8s.cni.cncf.io/v1/network-attachment-definitions"
NOTHING_OF = (
    MIGRATION_POLICIES,
    NETWORK_ATTACHMENTS,
    "/apis/storage.k8s.io/v1/storageclasses",
    "/apis/storage.k8s.io/v1/csidrivers",
    "/apis/storage.k8s.io/v1/csinodes",
    "/apis/storage.k8s.io/v1/volumeattachments",
    "/api/v1/limitranges",
    "/api/v1/persistentvolumes",
    "/api/v1/persistentvolumeclaims",
    "/api/v1/resourcequotas",
    "/apis/policy/v1/poddisruptionbudgets",
)
"""What the cluster has none of."""


@pytest.fixture
def cluster(server: ApiServer) -> LiveCluster:
    """Two nodes; VMI web on n1."""
    server.on_list(f"{KUBEVIRT}/kubevirts", wire.kubevirt(parallelMigrationsPerCluster=9))
    server.on_list("/api/v1/namespaces", wire.namespace("shop"))
    for path in NOTHING_OF:
        server.on_list(path)
    server.on_list(NODES, wire.node("n2"), wire.node("n1"))
    server.on_list(MIGRATIONS, wire.migration("m0", "web", phase="Succeeded"), version="20")
    server.on_list(VMIS, wire.vmi("web"))
    server.on_list(PODS, wire.launcher("web", nodeName="n1"), version="30")
    return LiveCluster(server.api, "rebalancer", "me")


def measured_cluster(server: ApiServer) -> LiveCluster:
    """The same one, where the server is a Prometheus as well."""
    prometheus = Prometheus(server.url, PrometheusPolicy(url=server.url))
    reader = LoadReader(prometheus, MeasuredLoadPolicy())
    return LiveCluster(server.api, "rebalancer", "me", reader)


def test_it_is_a_cluster(cluster: LiveCluster) -> None:
    """Checked by mypy."""
    as_protocol: Cluster = cluster
    assert as_protocol.now().tzinfo is not None


class TestRead:
    def test_everything_is_read(self, cluster: LiveCluster) -> None:
        snapshot = cluster.read()
        assert [node.name for node in snapshot.nodes] == ["n1", "n2"]
        assert snapshot.pod_of_vmi(snapshot.vmis[0]) == snapshot.pods[0]
        assert [migration.name for migration in snapshot.migrations] == ["m0"]
        assert snapshot.migration_configuration.parallel_migrations_per_cluster == 9
        assert [namespace.name for namespace in snapshot.namespaces] == ["shop"]
        assert snapshot.missing == ()
        assert snapshot.measured_load is None

    def test_pods_are_read_last(self, cluster: LiveCluster, server: ApiServer) -> None:
        cluster.read()
        assert [asked.path for asked in server.asked[-3:]] == [MIGRATIONS, VMIS, PODS]

    def test_pages_are_read_to_the_end(self, cluster: LiveCluster, server: ApiServer) -> None:
        pages = [("", "a"), ("a", "b"), ("b", "")]
        names = {"": "n1", "a": "n2", "b": "n3"}
        server.on("GET", NODES, *(page(wire.node(names[at]), go_on=to) for at, to in pages))
        assert [node.name for node in cluster.read().nodes] == ["n1", "n2", "n3"]
        assert server.queries(NODES) == [
            {"limit": "500"},
            {"limit": "500", "continue": "a"},
            {"limit": "500", "continue": "b"},
        ]

    def test_list_that_expires_midway_is_read_from_the_start(
        self, cluster: LiveCluster, server: ApiServer
    ) -> None:
        server.on(
            "GET",
            NODES,
            page(wire.node("gone-by-now"), go_on="a"),
            refusal(410, "the provided continue parameter is too old"),
            page(wire.node("n7")),
        )
        assert [node.name for node in cluster.read().nodes] == ["n7"]

    def test_list_that_expires_again_and_again_is_an_error(
        self, cluster: LiveCluster, server: ApiServer
    ) -> None:
        server.on("GET", NODES, refusal(410, "too old"))
        with pytest.raises(ClusterError, match="list nodes: HTTP 410: too old"):
            cluster.read()
        assert len(server.queries(NODES)) == 3

    @pytest.mark.usefixtures("cluster")
    def test_load_is_measured_up_to_when_it_is_read(self, server: ApiServer) -> None:
        half = series({"instance": "n1:9100"}, (1767268800, "0.5"))
        server.date = "Thu, 01 Jan 2026 12:00:00 GMT"
        server.on("GET", RANGE, matrix(half))
        server.on("GET", INSTANT, vector(sample("1.5", namespace="shop", name="web")))
        measured = measured_cluster(server).read()
        assert measured.missing == ()
        assert measured.measured_load is not None
        [reading] = measured.measured_load.readings["n1"]
        assert reading == (datetime(2026, 1, 1, 12, tzinfo=UTC), 0.5)
        assert measured.measured_load.usage == {WEB: 1500}

    def test_without_an_answer_from_prometheus_the_rest_is_read_and_load_is_missing(
        self, cluster: LiveCluster, server: ApiServer
    ) -> None:
        server.on("GET", RANGE, refusal(403, "no"))
        snapshot = measured_cluster(server).read()
        assert snapshot.missing == ("MeasuredLoad",)
        assert snapshot.measured_load is not None
        assert "HTTP 403" in snapshot.measured_load.problem
        assert replace(snapshot, measured_load=None, missing=()) == replace(
            cluster.read(), taken_at=snapshot.taken_at
        )

    def test_cluster_without_kubevirt_says_so(
        self, cluster: LiveCluster, server: ApiServer
    ) -> None:
        server.on("GET", f"{KUBEVIRT}/kubevirts", refusal(404, "404 page not found"))
        with pytest.raises(ClusterError, match="KubeVirt is not installed in this cluster"):
            cluster.read()

    @pytest.mark.parametrize("path", [MIGRATION_POLICIES, NETWORK_ATTACHMENTS])
    def test_cluster_need_not_know_migration_policies_and_network_definitions(
        self, path: str, cluster: LiveCluster, server: ApiServer
    ) -> None:
        server.on("GET", path, refusal(404, "404 page not found"))
        snapshot = cluster.read()
        assert (snapshot.migration_policies, snapshot.network_attachments) == ((), ())
        assert snapshot.missing == ()

    def test_migration_policies_that_may_not_be_listed_are_an_error(
        self, cluster: LiveCluster, server: ApiServer
    ) -> None:
        server.on("GET", MIGRATION_POLICIES, refusal(403, "forbidden"))
        with pytest.raises(ClusterError, match="migrationpolicies"):
            cluster.read()

    def test_settings_of_kubevirt_can_be_missing(
        self, cluster: LiveCluster, server: ApiServer
    ) -> None:
        server.on_list(f"{KUBEVIRT}/kubevirts")
        assert cluster.read().missing == ("KubeVirt",)

    def test_unreadable_object_is_named(self, cluster: LiveCluster, server: ApiServer) -> None:
        server.on_list(NODES, wire.node("n1"), wire.node("n2", {"cpu": "many"}))
        with pytest.raises(UnreadableObjectError, match=r"Node n2: status\.allocatable\.cpu: 'ma"):
            cluster.read()

    def test_answer_of_something_else_is_an_error(
        self, cluster: LiveCluster, server: ApiServer
    ) -> None:
        server.on("GET", NODES, Answer(body=b"<html>log in</html>"))
        with pytest.raises(ClusterError, match="list nodes: the answer is no list"):
            cluster.read()


def page(*items: Json, go_on: str = "") -> Answer:
    return Answer(body={"metadata": {"continue": go_on}, "items": list(items)})


class TestReread:
    def pods(self, *on_n1: Json, launchers: tuple[Json, ...] = ()) -> Callable[[Asked], Answer]:
        """Answers as the API server would, by selector."""

        def answer(asked: Asked) -> Answer:
            if "labelSelector" in asked.query:
                return page(*launchers)
            return page(*on_n1)

        return answer

    def test_only_what_is_named_is_read_anew(self, cluster: LiveCluster, server: ApiServer) -> None:
        before = cluster.read()
        server.asked.clear()
        server.on_list(MIGRATIONS, wire.migration("m1", "web"))
        server.on("GET", f"{NODES}/n1", Answer(body=wire.node("n1", unschedulable=True)))
        moved = wire.launcher("web", nodeName="n2")
        vmi = wire.vmi("web", status={"nodeName": "n2"})
        server.on(
            "GET", f"{KUBEVIRT}/namespaces/shop/virtualmachineinstances/web", Answer(body=vmi)
        )
        server.on("GET", PODS, self.pods(wire.pod("new", nodeName="n1"), launchers=(moved,)))
        after = cluster.reread(before, ["n1"], [WEB])
        assert [node.is_unschedulable for node in after.nodes] == [True, False]
        assert after.vmis[0].node_name == "n2"
        assert [migration.name for migration in after.migrations] == ["m1"]
        assert {str(pod.key): pod.node_name for pod in after.pods} == {
            "shop/new": "n1",
            "shop/virt-launcher-web": "n2",
        }
        assert after.namespaces == before.namespaces
        assert after.taken_at >= before.taken_at
        assert server.queries(PODS) == [
            {"fieldSelector": "spec.nodeName=n1", "limit": "500"},
            {"labelSelector": "kubevirt.io/created-by in (web-uid)", "limit": "500"},
        ]

    def test_what_has_vanished_is_gone(self, cluster: LiveCluster, server: ApiServer) -> None:
        server.on_list(
            PODS,
            wire.launcher("web", nodeName="n1"),
            wire.pod("a", nodeName="n1"),
            wire.pod("b", nodeName="n2"),
            wire.pod("c"),
        )
        before = cluster.read()
        server.on("GET", PODS, self.pods())
        after = cluster.reread(before, ["n1"], [WEB])
        assert [node.name for node in after.nodes] == ["n2"]
        assert after.vmis == ()
        assert [pod.name for pod in after.pods] == ["b", "c"]

    def test_pod_that_was_pending_is_bound_now(
        self, cluster: LiveCluster, server: ApiServer
    ) -> None:
        server.on_list(PODS, wire.pod("a"))
        before = cluster.read()
        server.on("GET", PODS, self.pods(wire.pod("a", nodeName="n1")))
        after = cluster.reread(before, ["n1"], [])
        assert [pod.node_name for pod in after.pods] == ["n1"]

    def test_launcher_that_ended_between_the_two_readings_does_not_stay(
        self, cluster: LiveCluster, server: ApiServer
    ) -> None:
        before = cluster.read()
        web = wire.launcher("web", nodeName="n1")
        server.on("GET", PODS, self.pods(web, launchers=()))
        assert cluster.reread(before, ["n1"], [WEB]).pods == ()

    def test_vmi_that_was_made_anew_brings_its_new_launcher(
        self, cluster: LiveCluster, server: ApiServer
    ) -> None:
        before = cluster.read()
        vmi = wire.vmi("web")
        vmi["metadata"]["uid"] = "another-uid"
        server.on(
            "GET", f"{KUBEVIRT}/namespaces/shop/virtualmachineinstances/web", Answer(body=vmi)
        )
        server.on("GET", PODS, self.pods())
        cluster.reread(before, [], [WEB])
        (query,) = server.queries(PODS)[1:]
        assert query["labelSelector"] == "kubevirt.io/created-by in (another-uid,web-uid)"


def test_documented_rights_are_those_that_are_used(cluster: LiveCluster, server: ApiServer) -> None:
    """The list in live.py, from which the ClusterRole and the Role are made."""
    snapshot = cluster.read()
    server.on("GET", f"{NODES}/n1", Answer(body=wire.node("n1")))
    web = f"{KUBEVIRT}/namespaces/shop/virtualmachineinstances/web"
    server.on("GET", web, Answer(body=wire.vmi("web")))
    cluster.reread(snapshot, ["n1"], [WEB])
    lease = "/apis/coordination.k8s.io/v1/namespaces/rebalancer/leases"
    server.on("POST", lease, lambda asked: Answer(201, asked.body))
    with cluster.leadership():
        server.on("POST", SHOP_MIGRATIONS, Answer(201))
        cluster.create_migration(TestMigrations.REQUEST)
        server.on("POST", SHOP_EVENTS, Answer(201))
        cluster.create_event(TestEvents.NOTICE)
        server.on("POST", LOCKS, refusal(409, "already exists"))
        with pytest.raises(RefusedError):
            cluster.create_hold(TestHolds.HOLD)
        cluster.delete_hold(TestHolds.HOLD.key)
        cluster.wait_for_change([WEB], 0.1)
    assert {right(asked) for asked in server.asked} == RIGHTS


LISTED = (
    *("csinodes", "kubevirts", "limitranges", "namespaces", "nodes", "persistentvolumeclaims"),
    *("persistentvolumes", "poddisruptionbudgets", "pods", "resourcequotas", "volumeattachments"),
    *("storageclasses", "csidrivers", "migrationpolicies", "network-attachment-definitions"),
    *("virtualmachineinstancemigrations", "virtualmachineinstances"),
)
RIGHTS = {
    *(("list", resource, "") for resource in LISTED),
    *(("watch", resource, "") for resource in ("pods", "virtualmachineinstancemigrations")),
    ("get", "nodes", ""),
    ("get", "virtualmachineinstances", "shop"),
    ("create", "virtualmachineinstancemigrations", "shop"),
    ("create", "events", "shop"),
    *((verb, "pods", "rebalancer") for verb in ("create", "get", "delete")),
    *((verb, "leases", "rebalancer") for verb in ("create", "get", "update")),
}


def right(asked: Asked) -> tuple[str, str, str]:
    """Verb, resource and namespace, as RBAC sees the request."""
    parts = re.split("/v1(?:alpha1)?/", asked.path)[1].split("/")
    namespace = ""
    if len(parts) > 2:
        _, namespace, *parts = parts
    verbs = {"POST": "create", "PUT": "update", "DELETE": "delete", "GET": "get"}
    verb = verbs[asked.method]
    if verb == "get" and len(parts) == 1:
        verb = "watch" if "watch" in asked.query else "list"
    return verb, parts[0], namespace


class TestMigrations:
    REQUEST = MigrationRequest("move-1", WEB, "host-2", {"l": "x"}, {"a": "y"})

    def test_migration_is_pinned_to_its_target_or_refused(
        self, cluster: LiveCluster, server: ApiServer
    ) -> None:
        server.on("POST", SHOP_MIGRATIONS, Answer(201))
        cluster.create_migration(self.REQUEST)
        (asked,) = server.asked
        assert asked.query == {"fieldValidation": "Strict"}
        assert asked.body["spec"] == {
            "vmiName": "web",
            "addedNodeSelector": {"kubernetes.io/hostname": "host-2"},
        }

    @pytest.mark.parametrize(
        ("status", "message", "expected"),
        [
            (409, 'virtualmachineinstancemigrations "move-1" already exists', ConflictError),
            (400, "an answer of its own", RefusedError),
            (403, "forbidden", RefusedError),
            (404, 'namespaces "shop" not found', RefusedError),
            (422, "spec.vmiName: Required value", RefusedError),
            (500, 'failed calling webhook "w": dial tcp', RefusedError),
        ],
    )
    def test_refusal_says_that_nothing_was_created(
        self,
        cluster: LiveCluster,
        server: ApiServer,
        status: int,
        message: str,
        expected: type[RebalancerError],
    ) -> None:
        server.on("POST", SHOP_MIGRATIONS, refusal(status, message))
        with pytest.raises(expected) as error:
            cluster.create_migration(self.REQUEST)
        assert type(error.value) is expected
        assert message.rpartition(": ")[2] in str(error.value)

    @pytest.mark.parametrize(
        "answer",
        [
            refusal(500, "etcdserver: request timed out"),
            refusal(429, "slow down", ("Retry-After", "1")),
            refusal(401, "Unauthorized"),
            Answer(201, {"kind": "x"}, cut_off=True),
        ],
    )
    def test_otherwise_it_is_not_known_whether_it_was_created(
        self, cluster: LiveCluster, server: ApiServer, answer: Answer
    ) -> None:
        server.on("POST", SHOP_MIGRATIONS, answer)
        with pytest.raises(ClusterError, match="it is not known whether this was done") as error:
            cluster.create_migration(self.REQUEST)
        assert not isinstance(error.value, RefusedError | ConflictError)
        assert len(server.asked) == 1


class TestEvents:
    NOTICE = Notice(
        Subject("VirtualMachineInstance", "shop", "web", "web-uid"), "RebalanceBound", "is bound"
    )

    def test_one_that_is_there_is_as_good(self, cluster: LiveCluster, server: ApiServer) -> None:
        server.on("POST", SHOP_EVENTS, refusal(409, "already exists"))
        cluster.create_event(self.NOTICE)
        assert server.asked[0].body["involvedObject"]["uid"] == "web-uid"

    def test_without_the_right_to_it_none_is_made(
        self, cluster: LiveCluster, server: ApiServer
    ) -> None:
        server.on("POST", SHOP_EVENTS, refusal(403, "events is forbidden"))
        with pytest.raises(ClusterError, match="events is forbidden"):
            cluster.create_event(self.NOTICE)


class TestHolds:
    HOLD = Hold(
        name="lock-1",
        namespace="rebalancer",
        node_name="n1",
        beneficiary_uid="web-uid",
        admitted_uids=("web-uid", "db-uid"),
        priority_class_name="high",
        lifetime_seconds=600,
        image="pause:1",
    )

    def test_lock_pod_is_created(self, cluster: LiveCluster, server: ApiServer) -> None:
        server.on("POST", LOCKS, Answer(201))
        cluster.create_hold(self.HOLD)
        assert server.asked[0].body["spec"]["nodeName"] == "n1"

    def existing(self, **changes: Any) -> Json:
        """What the API server has of a lock pod that was created from HOLD."""
        admitted = changes.get("admitted", self.HOLD.admitted_uids)
        lock = lock_pod_manifest(replace(self.HOLD, admitted_uids=admitted))
        lock["metadata"] |= {"uid": "lock-uid", "deletionTimestamp": changes.get("deleted")}
        lock["spec"]["nodeName"] = changes.get("node", "n1")
        lock["status"] = {"phase": changes.get("phase", "Running")}
        return lock

    def test_lock_pod_that_is_there_is_as_good(
        self, cluster: LiveCluster, server: ApiServer
    ) -> None:
        server.on("POST", LOCKS, refusal(409, 'pods "lock-1" already exists'))
        server.on("GET", f"{LOCKS}/lock-1", Answer(body=self.existing(phase="Pending")))
        cluster.create_hold(self.HOLD)
        assert [asked.method for asked in server.asked] == ["POST", "GET"]

    @pytest.mark.parametrize(
        ("changes", "problem"),
        [
            ({"node": "n2"}, "is on node n2, not n1"),
            ({"admitted": ("x-uid",)}, "admits the launchers of other VMIs (x-uid)"),
            ({"deleted": wire.CREATED}, "is being deleted"),
            ({"phase": "Failed"}, "has ended (Failed)"),
        ],
    )
    def test_lock_pod_that_does_not_hold_is_no_good(
        self, cluster: LiveCluster, server: ApiServer, changes: dict[str, Any], problem: str
    ) -> None:
        server.on("POST", LOCKS, refusal(409, 'pods "lock-1" already exists'))
        server.on("GET", f"{LOCKS}/lock-1", Answer(body=self.existing(**changes)))
        with pytest.raises(RefusedError) as error:
            cluster.create_hold(self.HOLD)
        assert str(error.value) == (
            f"create pods rebalancer/lock-1: there is one already, but it {problem}"
        )

    def test_lock_pod_that_vanishes_meanwhile_is_no_good(
        self, cluster: LiveCluster, server: ApiServer
    ) -> None:
        server.on("POST", LOCKS, refusal(409, 'pods "lock-1" already exists'))
        with pytest.raises(RefusedError, match="has just gone"):
            cluster.create_hold(self.HOLD)

    def test_missing_namespace_is_to_be_created(
        self, cluster: LiveCluster, server: ApiServer
    ) -> None:
        server.on("POST", LOCKS, refusal(404, 'namespaces "rebalancer" not found'))
        with pytest.raises(RefusedError, match="kubectl create namespace rebalancer"):
            cluster.create_hold(self.HOLD)

    def test_server_in_trouble_leaves_it_unknown(
        self, cluster: LiveCluster, server: ApiServer
    ) -> None:
        server.on("POST", LOCKS, refusal(500, "etcd"))
        with pytest.raises(ClusterError, match="it is not known whether this was done"):
            cluster.create_hold(self.HOLD)

    def test_lock_pod_is_deleted_and_may_be_gone_already(
        self, cluster: LiveCluster, server: ApiServer
    ) -> None:
        server.on("DELETE", f"{LOCKS}/lock-1", Answer(), refusal(404, "not found"))
        cluster.delete_hold(ObjectKey("rebalancer", "lock-1"))
        cluster.delete_hold(ObjectKey("rebalancer", "lock-1"))
        assert [asked.method for asked in server.asked] == ["DELETE", "DELETE"]

    def test_lock_pod_that_must_not_be_deleted_is_an_error(
        self, cluster: LiveCluster, server: ApiServer
    ) -> None:
        server.on("DELETE", f"{LOCKS}/lock-1", refusal(403, "no"))
        with pytest.raises(ClusterError, match="delete pods rebalancer/lock-1: HTTP 403: no"):
            cluster.delete_hold(ObjectKey("rebalancer", "lock-1"))
