"""What every test on the control plane takes for granted, shown on the real thing."""

import secrets
import time
from collections.abc import Iterator

import httpx
import pytest

from . import builders, scenario
from .api import Api, ApiError, Object, path_of
from .cluster import ControlPlane
from .faults import Answer, CutWatch, DropAnswer, DropRequest, ExpireWatch, FaultProxy
from .jaeger import Jaeger
from .migration_scripts import MigrationScript
from .reset import reset
from .waiting import launcher_pods, wait_for, wait_for_migration, wait_for_vmi

BEAR = "centos7-loud-bear"
VMIS = path_of("virtualmachineinstances", "default")
MIGRATIONS = path_of("virtualmachineinstancemigrations", "default")


@pytest.fixture
def api(control_plane: ControlPlane) -> Iterator[Api]:
    with control_plane.api() as api:
        yield api


class TestTheRequest:
    @pytest.mark.usefixtures("request_cluster")
    def test_workers_carry_the_sums_of_the_request(self, api: Api) -> None:
        sums = dict.fromkeys(scenario.REQUESTED_MI, 0)
        for pod in api.list(path_of("pods")):
            sums[pod["spec"]["nodeName"]] += _requested_bytes(pod)
        assert {name: total / 2**20 for name, total in sums.items()} == scenario.REQUESTED_MI
        percentages = [
            100 * mi // scenario.WORKER_MEMORY_MI for mi in scenario.REQUESTED_MI.values()
        ]
        assert percentages == [64, 58, 64]

    def test_big_vm_fits_nowhere_until_one_vm_is_migrated(
        self, request_cluster: ControlPlane, api: Api
    ) -> None:
        scenario.start_big_vm(request_cluster)
        message = wait_for(
            lambda: _unschedulable_message(api, scenario.BIG_VM), bool, "an unschedulable pod"
        )
        assert message.startswith("0/7 nodes are available: 1 node(s) were unschedulable, ")
        assert "3 Insufficient memory, 3 node(s) had untolerated taint(s)" in message

        api.create(MIGRATIONS, builders.migration("by-hand", BEAR, target_hostname=scenario.BLUE))

        wait_for_migration(api, "by-hand", "Succeeded")
        big = wait_for_vmi(api, scenario.BIG_VM, "Running")
        assert big["status"]["nodeName"] == scenario.GREEN
        assert _node_of(api, BEAR) == scenario.BLUE


class TestMigrations:
    def test_scripted_failure_leaves_the_vm_on_its_node(
        self, request_cluster: ControlPlane, api: Api
    ) -> None:
        request_cluster.node_agent.script(BEAR, MigrationScript(outcome="fail"))

        api.create(MIGRATIONS, builders.migration("fails", BEAR))

        wait_for_migration(api, "fails", "Failed")
        vmi = wait_for_vmi(api, BEAR, "Running")
        assert vmi["status"]["nodeName"] == scenario.GREEN
        assert vmi["status"]["migrationState"]["failed"]
        wait_for(
            lambda: [pod["status"]["phase"] for pod in launcher_pods(api, BEAR)],
            lambda phases: sorted(phases) == ["Failed", "Running"],
            "the target pod to fail",
        )

    def test_scripts_are_played_in_their_order(
        self, request_cluster: ControlPlane, api: Api
    ) -> None:
        agent = request_cluster.node_agent
        agent.script(BEAR, MigrationScript(outcome="fail"), MigrationScript())

        api.create(MIGRATIONS, builders.migration("first", BEAR))
        wait_for_migration(api, "first", "Failed")
        api.create(MIGRATIONS, builders.migration("second", BEAR, target_hostname=scenario.RED))

        wait_for_migration(api, "second", "Succeeded")
        assert _node_of(api, BEAR) == scenario.RED

    def test_stalled_migration_runs_until_it_is_released(
        self, request_cluster: ControlPlane, api: Api
    ) -> None:
        request_cluster.node_agent.script(BEAR, MigrationScript(outcome="stall"))
        api.create(MIGRATIONS, builders.migration("stalls", BEAR, target_hostname=scenario.RED))
        wait_for_migration(api, "stalls", "Running")

        time.sleep(1)
        assert api.get(f"{MIGRATIONS}/stalls")["status"]["phase"] == "Running"
        request_cluster.node_agent.release(BEAR)

        wait_for_migration(api, "stalls", "Succeeded")
        assert _node_of(api, BEAR) == scenario.RED

    def test_deleting_a_running_migration_aborts_it(
        self, request_cluster: ControlPlane, api: Api
    ) -> None:
        request_cluster.node_agent.script(BEAR, MigrationScript(outcome="stall"))
        api.create(MIGRATIONS, builders.migration("aborted", BEAR, target_hostname=scenario.RED))
        wait_for_migration(api, "aborted", "Running")

        api.delete(f"{MIGRATIONS}/aborted")

        wait_for(lambda: api.list(MIGRATIONS), lambda left: not left, "the migration to be gone")
        assert _node_of(api, BEAR) == scenario.GREEN


class TestAdmission:
    """KubeVirt's own virt-api stands before every migration."""

    @pytest.fixture
    def in_flight(self, request_cluster: ControlPlane, api: Api) -> Object:
        """A migration that runs until it is released."""
        request_cluster.node_agent.script(BEAR, MigrationScript(outcome="stall"))
        return api.create(MIGRATIONS, builders.migration("in-flight", BEAR))

    def test_a_migration_gets_its_selector_label_and_its_finalizer(self, in_flight: Object) -> None:
        metadata = in_flight["metadata"]
        assert metadata["labels"] == {"kubevirt.io/vmi-name": BEAR}
        assert metadata["finalizers"] == ["kubevirt.io/migrationJobFinalize"]

    @pytest.mark.parametrize("name", ["another", "in-flight"])
    def test_a_second_migration_is_refused_before_its_name_is_looked_at(
        self, in_flight: Object, api: Api, name: str
    ) -> None:
        with pytest.raises(ApiError, match="in-flight migration detected") as refused:
            api.create(MIGRATIONS, builders.migration(name, BEAR))
        assert refused.value.code == 400
        assert in_flight["metadata"]["uid"] in refused.value.body

    @pytest.mark.parametrize(
        ("change", "says"),
        [
            ({"spec": {"vmiName": "x"}}, "update of Migration object's spec is restricted"),
            ({"spec": {"addedNodeSelector": {"a": "b"}}}, "spec is restricted"),
            (
                {"metadata": {"labels": {"kubevirt.io/vmi-name": None}}},
                "selector label can't be removed from an in-flight migration",
            ),
            (
                {"metadata": {"labels": {"kubevirt.io/vmi-name": "x"}}},
                "selector label can't be modified on an in-flight migration",
            ),
        ],
    )
    @pytest.mark.usefixtures("in_flight")
    def test_what_a_migration_is_about_never_changes(
        self, api: Api, change: Object, says: str
    ) -> None:
        with pytest.raises(ApiError, match=says) as refused:
            api.patch(f"{MIGRATIONS}/in-flight", change)
        assert refused.value.code == 422


class TestLifeCycle:
    @pytest.mark.usefixtures("request_cluster")
    def test_deleted_vmi_goes_with_its_pods(self, api: Api) -> None:
        api.delete(f"{VMIS}/{BEAR}")

        wait_for(
            lambda: [vmi["metadata"]["name"] for vmi in api.list(VMIS)],
            lambda names: BEAR not in names,
            "the VMI to be gone",
        )
        assert launcher_pods(api, BEAR) == []

    @pytest.mark.usefixtures("empty_cluster")
    def test_vmi_may_be_declared_not_migratable(self, api: Api) -> None:
        scenario.add_nodes(api, [builders.node("n1")])
        vmi = builders.vmi("pinned", not_migratable="DisksNotLiveMigratable")

        scenario.start_vmis(api, {"n1": [vmi]})

        conditions = api.get(f"{VMIS}/pinned")["status"]["conditions"]
        condition = next(each for each in conditions if each["type"] == "LiveMigratable")
        assert (condition["status"], condition["reason"]) == ("False", "DisksNotLiveMigratable")

    def test_service_account_may_do_only_what_its_role_allows(
        self, empty_cluster: ControlPlane, api: Api
    ) -> None:
        api.create(path_of("serviceaccounts", "default"), {"metadata": {"name": "reader"}})
        rule = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}
        api.create(path_of("clusterroles"), {"metadata": {"name": "reader"}, "rules": [rule]})
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"}
        subject = {"kind": "ServiceAccount", "namespace": "default", "name": "reader"}
        binding = {"metadata": {"name": "reader"}, "roleRef": role, "subjects": [subject]}
        api.create(path_of("clusterrolebindings"), binding)

        token = empty_cluster.service_account_token("default", "reader")

        with empty_cluster.api(token) as reader:
            assert reader.list(path_of("nodes")) == []
            with pytest.raises(ApiError, match="pods is forbidden"):
                reader.list(path_of("pods"))


class TestReset:
    def test_nothing_of_an_earlier_test_is_left(
        self, request_cluster: ControlPlane, api: Api
    ) -> None:
        request_cluster.node_agent.script(BEAR, MigrationScript(outcome="stall"))
        api.create(MIGRATIONS, builders.migration("in-flight", BEAR))
        wait_for_migration(api, "in-flight", "Running")
        api.create(path_of("namespaces"), {"metadata": {"name": "other"}})
        api.create(path_of("priorityclasses"), {"metadata": {"name": "gold"}, "value": 1000})
        kubevirt = path_of("kubevirts", "kubevirt", "kubevirt")
        limits = {"migrations": {"parallelMigrationsPerCluster": 1}}
        api.patch(kubevirt, {"spec": {"configuration": limits}})

        reset(request_cluster)

        for plural in ("nodes", "pods", "virtualmachineinstances"):
            assert api.list(path_of(plural)) == []
        assert api.list(MIGRATIONS) == []
        assert "other" not in _names(api, "namespaces")
        assert "gold" not in _names(api, "priorityclasses")
        assert api.get(kubevirt)["spec"]["configuration"] == {}


class TestFaults:
    @pytest.fixture
    def proxy(self, empty_cluster: ControlPlane) -> Iterator[FaultProxy]:
        with FaultProxy(empty_cluster) as proxy:
            yield proxy

    @pytest.fixture
    def through(self, empty_cluster: ControlPlane, proxy: FaultProxy) -> Iterator[Api]:
        with Api(proxy.server, empty_cluster.admin_token, empty_cluster.ca_file) as api:
            yield api

    def test_request_meets_the_fault_as_often_as_told_then_passes(
        self, proxy: FaultProxy, through: Api
    ) -> None:
        proxy.inject("GET", "/nodes$", Answer(429, retry_after_seconds=1), times=2)
        for _ in range(2):
            with pytest.raises(ApiError, match="TooManyRequests"):
                through.list(path_of("nodes"))

        assert through.list(path_of("nodes")) == []
        assert [each.code for each in proxy.requests("GET", "/nodes")] == [429, 429, 200]

    def test_dropped_answer_means_done_and_dropped_request_does_not(
        self, proxy: FaultProxy, through: Api, api: Api
    ) -> None:
        config_maps = path_of("configmaps", "default")
        proxy.inject("POST", "/configmaps", DropRequest())
        proxy.inject("POST", "/configmaps", DropAnswer())
        for name in ("never-made", "made-all-the-same"):
            with pytest.raises(httpx.TransportError):
                through.create(config_maps, {"metadata": {"name": name}})

        names = [each["metadata"]["name"] for each in api.list(config_maps)]
        assert "made-all-the-same" in names
        assert "never-made" not in names

    def test_watch_is_cut_or_expires_after_so_many_events(
        self, proxy: FaultProxy, through: Api, api: Api
    ) -> None:
        config_maps = path_of("configmaps", "default")
        version = api.get(config_maps)["metadata"]["resourceVersion"]
        for number in range(3):
            api.create(config_maps, {"metadata": {"name": f"c{number}"}})
        proxy.inject("GET", "/configmaps", CutWatch(after_events=2))
        proxy.inject("GET", "/configmaps", ExpireWatch(after_events=1))

        seen: list[str] = []
        with pytest.raises(httpx.TransportError):
            _watch_names(through, config_maps, version, seen)
        with pytest.raises(ApiError) as expired:
            _watch_names(through, config_maps, version, seen)
        _watch_names(through, config_maps, version, seen)

        assert seen == ["c0", "c1", "c0", "c0", "c1", "c2"]
        assert expired.value.code == 410


def test_jaeger_takes_a_span_and_returns_it(jaeger: Jaeger) -> None:
    service = f"rig-{secrets.token_hex(4)}"
    now = time.time_ns()
    span = {
        "traceId": secrets.token_hex(16),
        "spanId": secrets.token_hex(8),
        "name": "plan",
        "kind": 1,
        "startTimeUnixNano": str(now),
        "endTimeUnixNano": str(now + 1),
    }
    name = {"key": "service.name", "value": {"stringValue": service}}
    body = {
        "resourceSpans": [{"resource": {"attributes": [name]}, "scopeSpans": [{"spans": [span]}]}]
    }
    httpx.post(f"{jaeger.otlp_http_endpoint}/v1/traces", json=body, trust_env=False)

    traces = jaeger.query(service, operation="plan")

    assert [trace["traceID"] for trace in traces] == [span["traceId"]]


def _names(api: Api, plural: str) -> list[str]:
    return [item["metadata"]["name"] for item in api.list(path_of(plural))]


def _watch_names(api: Api, path: str, version: str, seen: list[str]) -> None:
    for _, item in api.watch(path, version, seconds=1):
        seen.append(item["metadata"]["name"])


def _requested_bytes(pod: Object) -> int:
    """Memory that the scheduler counts: containers, and init containers that keep running."""
    sidecars = [
        each
        for each in pod["spec"].get("initContainers", [])
        if each.get("restartPolicy") == "Always"
    ]
    units = {"Mi": 2**20, "M": 10**6}
    total = 0
    for container in [*pod["spec"]["containers"], *sidecars]:
        memory = container["resources"]["requests"]["memory"]
        digits = memory.rstrip("Mi")
        total += int(digits) * units.get(memory.removeprefix(digits), 1)
    return total


def _unschedulable_message(api: Api, vmi_name: str) -> str:
    for pod in launcher_pods(api, vmi_name):
        for condition in pod["status"].get("conditions", []):
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                return str(condition["message"])
    return ""


def _node_of(api: Api, vmi_name: str) -> str:
    return str(api.get(f"{VMIS}/{vmi_name}")["status"]["nodeName"])
