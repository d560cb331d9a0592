"""What is created in a cluster."""

from msgspec.structs import replace

from rebalancer.cluster.decode import ObjectDecoder
from rebalancer.cluster.kinds import POD
from rebalancer.cluster.manifests import event_manifest, lock_pod_manifest, migration_manifest
from rebalancer.cluster.protocols import Hold, MigrationRequest, Notice
from rebalancer.model.objects import (
    LabelSelector,
    ObjectKey,
    Pod,
    PodAffinityTerm,
    Requirement,
    Toleration,
)
from rebalancer.model.plan import Subject
from tests.builders import NOW
from tests.cluster.api_server import to_json

HOLD = Hold(
    name="lock-1",
    namespace="rebalancer",
    node_name="n1",
    beneficiary_uid="web-uid",
    admitted_uids=("web-uid", "db-uid"),
    priority_class_name="high",
    lifetime_seconds=600,
    image="registry.example/pause:1",
)


def lock_pod() -> Pod:
    """The lock pod as this program would read it from the cluster."""
    manifest = lock_pod_manifest(HOLD)
    manifest["metadata"]["uid"] = "lock-uid"
    manifest["status"] = {"phase": "Pending"}
    pod = ObjectDecoder().decode(POD, to_json(manifest), "lock")
    assert isinstance(pod, Pod)
    return pod


def test_lock_pod_keeps_off_all_pods_but_the_launchers_it_admits() -> None:
    assert lock_pod().pod_anti_affinity == (
        PodAffinityTerm(
            topology_key="kubernetes.io/hostname",
            selector=LabelSelector(
                (Requirement("kubevirt.io/created-by", "NotIn", ("db-uid", "web-uid")),)
            ),
            namespaces=(),
            namespace_selector=LabelSelector(),
        ),
    )


def test_lock_pod_is_bound_from_the_start_and_asks_for_no_room() -> None:
    lock = lock_pod()
    assert lock.node_name == "n1"
    assert lock.requests == {"pods": 1}
    assert lock.tolerations == (Toleration(operator="Exists"),)
    assert lock.unmodelled == ()


def test_lock_pod_can_be_told_from_others() -> None:
    assert lock_pod().labels == {
        "app.kubernetes.io/name": "kubevirt-rebalancer",
        "rebalancer/goal-uid": "web-uid",
    }


def test_lock_pod_ends_by_itself_and_at_once_when_deleted() -> None:
    spec = lock_pod_manifest(HOLD)["spec"]
    assert spec["activeDeadlineSeconds"] == 600
    assert spec["terminationGracePeriodSeconds"] == 0


def test_lock_pod_is_no_easier_to_preempt_than_its_beneficiary() -> None:
    assert lock_pod_manifest(HOLD)["spec"]["priorityClassName"] == "high"
    without_class = lock_pod_manifest(replace(HOLD, priority_class_name=""))
    assert "priorityClassName" not in without_class["spec"]


def test_lock_pod_fits_the_restricted_pod_security_standard() -> None:
    """kubernetes.io/docs/concepts/security/pod-security-standards/#restricted"""
    spec = lock_pod_manifest(HOLD)["spec"]
    (container,) = spec["containers"]
    assert container["image"] == "registry.example/pause:1"
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"] == {
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }


def test_migration_goes_to_one_node_and_says_what_it_is_for() -> None:
    request = MigrationRequest(
        "move-1", ObjectKey("shop", "web"), "host-2", {"rebalancer/plan-id": "p"}, {"note": "x"}
    )
    assert migration_manifest(request) == {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstanceMigration",
        "metadata": {
            "name": "move-1",
            "namespace": "shop",
            "labels": {
                "app.kubernetes.io/name": "kubevirt-rebalancer",
                "rebalancer/plan-id": "p",
            },
            "annotations": {"note": "x"},
        },
        "spec": {
            "vmiName": "web",
            "addedNodeSelector": {"kubernetes.io/hostname": "host-2"},
        },
    }


ON_WEB = Notice(Subject("VirtualMachineInstance", "shop", "web", "web-uid"), "Some", "is told")


def test_event_is_found_by_the_object_it_is_about() -> None:
    event = event_manifest(ON_WEB, NOW)
    assert event["metadata"]["namespace"] == "shop"
    assert event["involvedObject"] == {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "namespace": "shop",
        "name": "web",
        "uid": "web-uid",
    }
    of_node = replace(ON_WEB, subject=Subject("Node", "", "n1", "n1-uid"), is_warning=True)
    event = event_manifest(of_node, NOW)
    assert (event["metadata"]["namespace"], event["type"]) == ("default", "Warning")
    assert event["involvedObject"]["apiVersion"] == "v1"


def test_event_that_tells_the_same_has_the_same_name_and_no_other() -> None:
    def name(notice: Notice) -> str:
        return str(event_manifest(notice, NOW)["metadata"]["name"])

    others = (
        replace(ON_WEB, reason="Other"),
        replace(ON_WEB, message="is told anew"),
        replace(ON_WEB, subject=Subject("VirtualMachineInstance", "shop", "web", "another-uid")),
    )
    assert name(ON_WEB) == name(replace(ON_WEB))
    assert len({name(notice) for notice in (ON_WEB, *others)}) == 4


def test_message_of_an_event_is_no_longer_than_the_api_server_takes() -> None:
    assert len(event_manifest(replace(ON_WEB, message="x" * 5000), NOW)["message"]) == 1024
