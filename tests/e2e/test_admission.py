"""KubeVirt's own virt-api refuses a migration: told in words, planned around, never retried."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from rebalancer.cluster.api import Api as ProductApi
from rebalancer.cluster.api import ApiError as ProductApiError
from rebalancer.cluster.config import load_config
from rebalancer.cluster.kinds import MIGRATION
from rebalancer.cluster.live import LiveCluster
from rebalancer.cluster.protocols import MigrationRequest
from rebalancer.cluster.refusals import migration_refusal
from rebalancer.errors import RefusedError
from rebalancer.model.objects import ObjectKey
from tests.controlplane import builders, scenario
from tests.controlplane.api import Api, ApiError, Object, path_of
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.faults import FaultProxy, Meanwhile
from tests.controlplane.migration_scripts import MigrationScript
from tests.controlplane.scenario import BIG_VM
from tests.controlplane.waiting import wait_for, wait_for_vmi
from tests.e2e.cluster_view import MIGRATIONS, Migrated, lock_pods, migrations
from tests.e2e.command import Finished, rebalancer

GOOSE = "fedora-advanced-goose"
"""The VM that the cheapest plan moves."""
GOOSE_PATH = path_of("virtualmachineinstances", "default", GOOSE)
CRD = path_of("customresourcedefinitions", name="virtualmachineinstancemigrations.kubevirt.io")
WEBHOOKS = path_of("validatingwebhookconfigurations", name="virt-api-validator")
QUOTAS = path_of("resourcequotas", "default")
IN_DEFAULT = path_of("virtualmachineinstancemigrations", "default")

Happening = Callable[[Api], object]


@pytest.fixture
def proxy(pending_vm: ControlPlane) -> Iterator[FaultProxy]:
    with FaultProxy(pending_vm) as proxy:
        yield proxy


def run_while(proxy: FaultProxy, api: Api, happening: Happening) -> Finished:
    """A cycle in which something happens after the last look, before the migration is created."""
    proxy.inject("POST", "/virtualmachineinstancemigrations", Meanwhile(lambda: happening(api)))
    return rebalancer("run", "-o", "json", kubeconfig=proxy.kubeconfig())


def refused_in(done: Finished) -> list[tuple[str, str]]:
    """The VMs and codes that the outcomes tell."""
    return [
        (refusal["name"], refusal["code"])
        for outcome in done.document["outcomes"]
        for refusal in outcome["refused"]
    ]


def creates(proxy: FaultProxy) -> list[int | None]:
    """How the API server has answered each attempt to create a migration."""
    asked = proxy.requests("POST", "/virtualmachineinstancemigrations")
    return [request.code for request in asked]


class TestTheVmHasChanged:
    def test_vm_that_turns_out_not_to_be_migratable_stays_and_another_one_moves(
        self, proxy: FaultProxy, api: Api
    ) -> None:
        done = run_while(proxy, api, set_not_migratable)
        assert done.code == 0, done.stderr
        assert refused_in(done) == [(GOOSE, "not-live-migratable")]
        assert f"of VM default/{GOOSE} was refused (not-live-migratable): KubeVirt" in done.stderr
        assert "(HostDevices: has a GPU); it stays where it is until that is mended" in done.stderr
        assert_another_vm_moved(proxy, api)

    def test_vm_that_somebody_else_migrates_is_left_to_them(
        self, proxy: FaultProxy, pending_vm: ControlPlane, api: Api
    ) -> None:
        pending_vm.node_agent.script(GOOSE, MigrationScript(outcome="stall"))
        theirs = builders.migration("theirs", GOOSE)
        done = run_while(proxy, api, lambda api: api.create(IN_DEFAULT, theirs))
        assert done.code == 4, done.stderr
        assert refused_in(done) == [(GOOSE, "migration-in-flight")]
        uid = api.get(f"{IN_DEFAULT}/theirs")["metadata"]["uid"]
        assert f"(migration-in-flight): another migration of it is under way (uid {uid})" in (
            done.stderr
        )
        # Theirs makes the room that was to be made.
        assert [goal["verdict"] for goal in done.document["plan"]["goals"]] == ["waiting"]
        assert creates(proxy) == [400]
        pending_vm.node_agent.release(GOOSE)
        wait_for_vmi(api, BIG_VM, "Running")
        assert migrations(api) == [Migrated(GOOSE, "Succeeded")]

    def test_vm_that_has_ended_is_not_migrated(self, proxy: FaultProxy, api: Api) -> None:
        ended = {"status": {"phase": "Failed"}}
        done = run_while(proxy, api, lambda api: api.patch(GOOSE_PATH, ended))
        assert refused_in(done) == [(GOOSE, "not-running")]
        assert f"should it run, start it: virtctl start -n default {GOOSE}" in done.stderr
        assert Migrated(GOOSE, "Succeeded") not in migrations(api)
        wait_for_vmi(api, BIG_VM, "Running")

    def test_vm_that_has_vanished_is_not_migrated(self, proxy: FaultProxy, api: Api) -> None:
        done = run_while(proxy, api, remove_goose)
        assert refused_in(done) == [(GOOSE, "gone")]
        assert "(gone): it does not exist any more" in done.stderr
        assert GOOSE not in [migration.vm for migration in migrations(api)]
        wait_for_vmi(api, BIG_VM, "Running")


def assert_another_vm_moved(proxy: FaultProxy, api: Api) -> None:
    """One refusal, one migration, of another VM, and nothing left over."""
    assert creates(proxy) == [400, 201]
    ((vm, phase),) = migrations(api)
    assert vm != GOOSE
    assert phase == "Succeeded"
    wait_for_vmi(api, BIG_VM, "Running")
    assert lock_pods(api) == []


def set_not_migratable(api: Api) -> None:
    vmi = api.get(GOOSE_PATH)
    for condition in vmi["status"]["conditions"]:
        if condition["type"] == "LiveMigratable":
            condition |= {"status": "False", "reason": "HostDevices", "message": "has a GPU"}
    api.update(GOOSE_PATH, vmi)


def remove_goose(api: Api) -> None:
    """At once, whatever its finalizers wait for."""

    def is_gone() -> bool:
        try:
            api.patch(GOOSE_PATH, {"metadata": {"finalizers": None}})
            api.delete(GOOSE_PATH, gracePeriodSeconds="0")
        except ApiError as error:
            return error.code == 404
        return False

    wait_for(is_gone, bool, "the VMI to be gone")


class TestNobodyIsLetIn:
    """What bars every migration is met once, and not by trying one VM after the other."""

    @pytest.mark.parametrize("bar", ["virt-api is down", "the field is unknown"])
    def test_the_goal_ends_at_the_first_refusal(
        self, proxy: FaultProxy, api: Api, bar: str
    ) -> None:
        code, says = BARS[bar]
        with barred(api, bar):
            done = rebalancer("run", "-o", "json", kubeconfig=proxy.kubeconfig())
        assert done.code == 4, done.stderr
        assert f"was refused ({code}): " in done.stderr
        assert says in done.stderr
        assert [outcome["ending"] for outcome in done.document["outcomes"]] == ["not-started"]
        assert len(creates(proxy)) == 1
        assert migrations(api) == []
        assert lock_pods(api) == []
        # Nothing of it is remembered once the bar has gone.
        assert rebalancer("run", kubeconfig=proxy.kubeconfig()).code == 0
        assert migrations(api) == [Migrated(GOOSE, "Succeeded")]


BARS = {
    "virt-api is down": (
        "webhook-unavailable",
        "no migration is accepted while webhook migration-create-validator.kubevirt.io does not",
    ),
    "the field is unknown": (
        "unknown-field",
        "this KubeVirt does not know spec.addedNodeSelector of a migration",
    ),
}


@contextmanager
def barred(api: Api, bar: str) -> Iterator[None]:
    """No migration is let in inside; the API server takes a moment to notice either change."""
    path = WEBHOOKS if bar == "virt-api is down" else CRD
    before = api.get(path)
    changed = api.get(path)
    if path == WEBHOOKS:
        for webhook in changed["webhooks"]:
            webhook["clientConfig"]["url"] = "https://127.0.0.1:1/"
    else:
        for version in changed["spec"]["versions"]:
            properties = version["schema"]["openAPIV3Schema"]["properties"]
            del properties["spec"]["properties"]["addedNodeSelector"]
    api.update(path, changed)
    try:
        wait_for(lambda: let_in(api), lambda answer: BAR_SIGNS[path] in answer, bar)
        yield
    finally:
        current = api.get(path)["metadata"]["resourceVersion"]
        before["metadata"]["resourceVersion"] = current
        api.update(path, before)
        wait_for(lambda: let_in(api), lambda answer: answer == "", f"no longer: {bar}")


BAR_SIGNS = {WEBHOOKS: "failed calling webhook", CRD: "unknown field"}


def let_in(api: Api) -> str:
    """Why the API server would not take a migration of the goose; empty if it would."""
    candidate = builders.migration("candidate", GOOSE, target_hostname="anywhere")
    try:
        api.create(IN_DEFAULT, candidate, dryRun="All", fieldValidation="Strict")
    except ApiError as error:
        return error.body
    return ""


class TestTheNamespace:
    def test_a_quota_on_migrations_is_named(self, proxy: FaultProxy, api: Api) -> None:
        quota = {
            "metadata": {"name": "no-migrations"},
            "spec": {"hard": {"count/virtualmachineinstancemigrations.kubevirt.io": "0"}},
        }
        api.create(QUOTAS, quota)
        wait_for(lambda: let_in(api), lambda answer: "exceeded quota" in answer, "the quota")
        done = rebalancer("run", "-o", "json", kubeconfig=proxy.kubeconfig())
        assert done.code == 4, done.stderr
        assert set(creates(proxy)) == {403}
        vms = [vm for vm, _ in refused_in(done)]
        assert {code for _, code in refused_in(done)} == {"quota"}
        assert len(vms) == len(set(vms))
        assert "ResourceQuota no-migrations, requested: count/" in done.stderr
        assert migrations(api) == []

    def test_a_namespace_that_is_being_deleted_is_named(
        self, empty_cluster: ControlPlane, api: Api
    ) -> None:
        api.create(path_of("namespaces"), {"metadata": {"name": "leaving"}})
        anchor = {"metadata": {"name": "anchor", "finalizers": ["rebalancer.test/stay"]}}
        api.create(path_of("configmaps", "leaving"), anchor)
        api.delete(path_of("namespaces", name="leaving"))
        cluster = LiveCluster(
            ProductApi(load_config(empty_cluster.kubeconfig(), None)), "default", "test"
        )
        try:
            with pytest.raises(RefusedError, match="namespace leaving is being dele") as refused:
                cluster.create_migration(
                    MigrationRequest("m", ObjectKey("leaving", "vm"), "n1", {}, {})
                )
        finally:
            free = {"metadata": {"finalizers": None}}
            api.patch(path_of("configmaps", "leaving", "anchor"), free)
        assert refused.value.code == "namespace-terminating"


class TestThroughOurClient:
    """What our own checks and manifests never let come to the webhooks."""

    @pytest.mark.parametrize(
        ("spec", "says"),
        [
            ({}, "vmiName is missing"),
            (
                {"vmiName": GOOSE, "priority": "user-triggered"},
                "MigrationPriorityQueue feature gate is not enabled",
            ),
            (
                {"vmiName": GOOSE, "sendTo": {"connectURL": "x", "migrationID": "1"}},
                "DecentralizedLiveMigration feature gate is not enabled",
            ),
            (
                {"vmiName": GOOSE, "receive": {"migrationID": "1"}},
                "DecentralizedLiveMigration feature gate is not enabled",
            ),
            (
                {"vmiName": GOOSE, "addedNodeSelector": 5},
                'addedNodeSelector in body must be of type object: "number"',
            ),
        ],
    )
    def test_other_denials_are_passed_on_with_their_webhook(
        self, request_cluster: ControlPlane, spec: Object, says: str
    ) -> None:
        client = ProductApi(load_config(request_cluster.kubeconfig(), None))
        body = {
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachineInstanceMigration",
            "metadata": {"name": "m", "namespace": "default"},
            "spec": spec,
        }
        with pytest.raises(ProductApiError) as error:
            client.create(MIGRATION, "default", body, {})
        status, answer = error.value.status, error.value.answer
        refusal = migration_refusal(status, answer, ObjectKey("default", GOOSE))
        assert refusal is not None
        assert refusal.code == "webhook-denied"
        assert says in str(refusal)
        assert "kubevirt.io denied the request: " in str(refusal)

    def test_vm_whose_name_is_no_label_value_can_run_and_not_be_migrated(
        self, empty_cluster: ControlPlane, api: Api
    ) -> None:
        name = "x" * 63 + ".y"
        scenario.add_nodes(api, [builders.node("n1"), builders.node("n2")])
        scenario.start_vmis(api, {"n1": [builders.vmi(name)]})
        kubeconfig = empty_cluster.kubeconfig()
        cluster = LiveCluster(ProductApi(load_config(kubeconfig, None)), "default", "test")
        request = MigrationRequest("m", ObjectKey("default", name), "n2", {}, {})
        with pytest.raises(RefusedError, match="only under a shorter name") as refused:
            cluster.create_migration(request)
        assert refused.value.code == "name-too-long"
        explained = rebalancer("explain", f"default/{name}", "-o", "json", kubeconfig=kubeconfig)
        assert explained.document["refused"]["code"] == "name-too-long"
        assert api.list(MIGRATIONS) == []
