"""Nodes, VMIs, migrations and the rest; whatever cannot be read is named."""

from datetime import datetime
from typing import Any

import msgspec
import pytest

from rebalancer.cluster.decode import Object, ObjectDecoder
from rebalancer.cluster.kinds import (
    CLAIM,
    CSI_DRIVER,
    CSI_NODE,
    KUBEVIRT,
    MIGRATION,
    MIGRATION_POLICY,
    NAMESPACE,
    NETWORK_ATTACHMENT,
    NODE,
    POD,
    STORAGE_CLASS,
    VMI,
    VOLUME,
    VOLUME_ATTACHMENT,
    Kind,
)
from rebalancer.cluster.virtual_machines import KubeVirtSettings
from rebalancer.errors import ClusterError, UnreadableObjectError
from rebalancer.model.objects import (
    Condition,
    CSIDriver,
    CSINode,
    CsiVolume,
    LauncherConfiguration,
    Migration,
    MigrationConfiguration,
    MigrationPolicy,
    MigrationState,
    Namespace,
    NetworkAttachmentDefinition,
    Node,
    NodeSelectorTerm,
    PersistentVolume,
    PersistentVolumeClaim,
    Requirement,
    StorageClass,
    Taint,
    VirtualMachineInstance,
    VolumeAttachment,
)
from tests.cluster import wire_builders as wire
from tests.cluster.wire_builders import CREATED, Json

KVM = "devices.kubevirt.io/kvm"


def read(kind: Kind, item: Json) -> Object:
    return ObjectDecoder().decode(kind, msgspec.json.encode(item), "here")


def read_claim(item: Json) -> PersistentVolumeClaim:
    claim = read(CLAIM, item)
    assert isinstance(claim, PersistentVolumeClaim)
    return claim


def read_volume(item: Json) -> PersistentVolume:
    volume = read(VOLUME, item)
    assert isinstance(volume, PersistentVolume)
    return volume


def read_node(item: Json) -> Node:
    node = read(NODE, item)
    assert isinstance(node, Node)
    return node


def read_vmi(name: str = "web", **fields: Any) -> VirtualMachineInstance:
    vmi = read(VMI, wire.vmi(name, **fields))
    assert isinstance(vmi, VirtualMachineInstance)
    return vmi


def read_kubevirt(item: Json) -> KubeVirtSettings:
    settings = read(KUBEVIRT, item)
    assert isinstance(settings, KubeVirtSettings)
    return settings


def with_field(item: Json, path: str, value: object) -> Json:
    """The object with another value at `a.b.c`."""
    *parents, last = path.split(".")
    place = item
    for parent in parents:
        place = place[parent]
    place[last] = value
    return item


class TestNodes:
    def test_allocatable_counts_and_capacity_does_not(self) -> None:
        """kubevirt/kubevirt#7614: capacity 1k, allocatable 0."""
        item = wire.node("n1", {"cpu": "4", "memory": "16163984Ki", "pods": "110", KVM: "0"})
        item["status"]["capacity"] = {**item["status"]["allocatable"], KVM: "1k"}
        assert read_node(item).allocatable == {
            "cpu": 4000,
            "memory": 16163984 * 1024,
            "pods": 110,
            KVM: 0,
        }

    def test_1k_devices_are_a_thousand(self) -> None:
        assert read_node(wire.node("n1", {**wire.ROOM, KVM: "1k"})).allocatable[KVM] == 1000

    @pytest.mark.parametrize("resource", ["cpu", "memory", "pods"])
    def test_node_without_allocatable_room_is_refused(self, resource: str) -> None:
        room = {name: amount for name, amount in wire.ROOM.items() if name != resource}
        with pytest.raises(UnreadableObjectError, match="is missing") as error:
            read_node(wire.node("n1", room))
        assert error.value.field == f"status.allocatable.{resource}"

    def test_node_without_status_is_refused(self) -> None:
        with pytest.raises(UnreadableObjectError, match=r"Node n1: status\.allocatable: is miss"):
            read_node(with_field(wire.node("n1"), "status", None))

    @pytest.mark.parametrize("status", ["False", "Unknown"])
    def test_only_condition_ready_true_is_ready(self, status: str) -> None:
        assert read_node(wire.node("n1")).is_ready
        assert not read_node(wire.node("n1", ready=status)).is_ready
        assert not read_node(with_field(wire.node("n1"), "status.conditions", None)).is_ready

    def test_addresses_within_the_cluster_are_read(self) -> None:
        addresses = [
            {"type": "Hostname", "address": "n1.example.com"},
            {"type": "InternalIP", "address": "10.0.0.1"},
            {"type": "ExternalIP", "address": "203.0.113.1"},
            {"type": "InternalIP", "address": "fd00::1"},
        ]
        node = read_node(with_field(wire.node("n1"), "status.addresses", addresses))
        assert node.internal_addresses == ("10.0.0.1", "fd00::1")

    def test_taints_and_cordon_are_read(self) -> None:
        taint = {"key": "kubevirt.io/drain", "effect": "NoSchedule", "timeAdded": None}
        node = read_node(wire.node("n1", unschedulable=True, taints=[taint]))
        assert node.is_unschedulable
        assert node.taints == (Taint("kubevirt.io/drain", "NoSchedule"),)


class TestVirtualMachines:
    @pytest.mark.parametrize(
        ("domain", "memory", "expected"),
        [
            ({"memory": {"guest": "2Gi"}}, {"guestCurrent": "1Gi"}, 2**30),
            ({"memory": {"guest": "2Gi"}}, {}, 2 * 2**30),
            (
                {"resources": {"requests": {"memory": "3Gi"}, "limits": {"memory": "4Gi"}}},
                None,
                3 * 2**30,
            ),
            ({"resources": {"limits": {"memory": "4Gi"}}}, None, 4 * 2**30),
            ({}, None, None),
        ],
    )
    def test_guest_memory_is_what_the_guest_has_now(
        self, domain: Json, memory: Json | None, expected: int | None
    ) -> None:
        vmi = read_vmi(domain=domain, status={"memory": memory})
        assert vmi.guest_memory_bytes == expected

    @pytest.mark.parametrize(
        ("cpu", "expected"),
        [(None, True), ({"model": "host-model"}, True), ({"model": "Skylake-Client"}, False)],
    )
    def test_cpu_model_is_the_hosts_unless_it_is_named(self, cpu: Json, expected: bool) -> None:
        assert read_vmi(domain={"cpu": cpu}).has_host_model_cpu is expected

    def test_live_migratable_condition_is_kept_with_its_reason(self) -> None:
        condition = {
            "type": "LiveMigratable",
            "status": "False",
            "reason": "DisksNotLiveMigratable",
            "message": "cannot migrate VMI: PVC disk is not shared",
            "lastProbeTime": None,
        }
        vmi = read_vmi(status={"conditions": [{"type": "Unheard-of"}, condition]})
        assert vmi.live_migratable == Condition(
            "False", "DisksNotLiveMigratable", "cannot migrate VMI: PVC disk is not shared"
        )
        assert read_vmi().live_migratable is None

    def test_migration_state_is_read(self) -> None:
        state = {"migrationUid": "m", "failed": True, "startTimestamp": None}
        vmi = read_vmi(status={"migrationState": state})
        assert vmi.migration_state == MigrationState("m", is_completed=False, is_failed=True)

    def test_everything_that_bears_on_moving_is_read(self) -> None:
        vmi = read_vmi(
            architecture="arm64",
            nodeSelector={"kubernetes.io/hostname": "n1"},
            evictionStrategy="External",
            status={"evacuationNodeName": "n1"},
        )
        assert vmi.architecture == "arm64"
        assert vmi.node_selector == {"kubernetes.io/hostname": "n1"}
        assert vmi.eviction_strategy == "External"
        assert vmi.evacuation_node_name == "n1"
        assert vmi.node_name == "n1"

    def test_migration_keeps_its_phases_times_and_reason(self) -> None:
        item = wire.migration(
            "m1",
            "web",
            phase="Failed",
            phaseTransitionTimestamps=[
                {"phase": "Pending", "phaseTransitionTimestamp": CREATED},
                {"phase": "Scheduling", "phaseTransitionTimestamp": None},
                {"phase": "Failed", "phaseTransitionTimestamp": CREATED},
            ],
            migrationState={"failureReason": "target pod is unschedulable"},
        )
        time = datetime.fromisoformat(CREATED)
        assert read(MIGRATION, item) == Migration(
            namespace="shop",
            name="m1",
            uid="m1-uid",
            vmi_name="web",
            phase="Failed",
            created_at=time,
            phase_times=(("Pending", time), ("Failed", time)),
            failure_reason="target pod is unschedulable",
        )

    def test_kubevirts_limits_are_read_and_the_rest_defaults(self) -> None:
        item = wire.kubevirt(
            parallelOutboundMigrationsPerNode=1,
            completionTimeoutPerGiB=800,
            bandwidthPerMigration="64Mi",
            allowPostCopy=None,
        )
        expected = MigrationConfiguration(
            parallel_outbound_migrations_per_node=1,
            completion_timeout_seconds_per_gib=800,
            bandwidth_bytes_per_second=64 * 2**20,
        )
        assert read_kubevirt(item).migrations == expected
        assert read_kubevirt(with_field(item, "spec", None)) == KubeVirtSettings(
            MigrationConfiguration(), LauncherConfiguration()
        )


class TestStorageAndNamespaces:
    def test_claim_names_its_volume_once_bound(self) -> None:
        assert read(CLAIM, wire.claim("c")) == PersistentVolumeClaim("shop", "c", is_bound=False)
        assert read(CLAIM, wire.claim("c", "v")) == PersistentVolumeClaim("shop", "c", "v")

    def test_claim_that_waits_for_its_volume_is_not_bound(self) -> None:
        waiting = wire.claim("c", "v")
        waiting["metadata"]["annotations"] = None
        assert read_claim(waiting) == PersistentVolumeClaim("shop", "c", "v", is_bound=False)

    def test_claim_that_no_pod_can_use_any_more_says_why(self) -> None:
        lost = {**wire.claim("c", "v"), "status": {"phase": "Lost"}}
        assert read_claim(lost).is_lost
        leaving = wire.claim("c", "v")
        leaving["metadata"]["deletionTimestamp"] = "2026-11-02T08:00:00Z"
        assert read_claim(leaving).is_terminating

    def test_access_mode_for_one_pod_is_kept(self) -> None:
        made = read_claim(wire.claim("c", "v", accessModes=["ReadWriteOncePod"]))
        assert made.is_read_write_once_pod

    def test_volume_keeps_its_node_affinity(self) -> None:
        expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1"]}
        affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
        assert read(VOLUME, wire.volume("v", nodeAffinity=affinity)) == PersistentVolume(
            "v", (NodeSelectorTerm((Requirement("kubernetes.io/hostname", "In", ("n1",)),)),)
        )
        assert read(VOLUME, wire.volume("v")) == PersistentVolume("v", None)

    def test_zone_labels_of_a_volume_are_kept(self) -> None:
        old, new = "failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"
        made = read_volume(wire.volume("v", labels={new: "a", old: "a__b"}))
        assert made.zones == (Requirement(old, "In", ("a", "b")), Requirement(new, "In", ("a",)))
        assert read_volume(wire.volume("v", labels={new: "a__", old: ""})).zones == ()

    def test_volume_of_a_driver_keeps_its_handle(self) -> None:
        made = read_volume(wire.volume("v", csi={"driver": "rbd", "volumeHandle": "1"}))
        assert made.csi == CsiVolume("rbd", "1")

    def test_volume_of_an_old_plugin_that_a_driver_stands_in_for_is_named(self) -> None:
        assert read_volume(wire.volume("v", cinder={"volumeID": "1"})).legacy_source == "cinder"
        assert read_volume(wire.volume("v", nfs={"path": "/", "server": "s"})).legacy_source == ""

    def test_volume_that_names_nodes_is_nowhere(self) -> None:
        """The scheduler shows the terms a node that has no name."""
        field = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
        affinity = {"required": {"nodeSelectorTerms": [{"matchFields": [field]}]}}
        made = read_volume(wire.volume("v", nodeAffinity=affinity))
        assert made.node_affinity == (NodeSelectorTerm(),)

    def test_storage_class_tells_where_and_when_its_volumes_are_made(self) -> None:
        zone = {"key": "zone", "values": ["a", "b"]}
        item = {
            "metadata": {"name": "local"},
            "provisioner": "lvm",
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": [{"matchLabelExpressions": [zone]}],
        }
        terms = (NodeSelectorTerm((Requirement("zone", "In", ("a", "b")),)),)
        assert read(STORAGE_CLASS, item) == StorageClass("local", "lvm", True, terms)
        at_once = {"metadata": {"name": "nfs"}, "provisioner": "nfs", "allowedTopologies": []}
        assert read(STORAGE_CLASS, at_once) == StorageClass("nfs", "nfs", False, None)

    def test_driver_tells_whether_its_capacity_is_tracked(self) -> None:
        item = {"metadata": {"name": "lvm"}, "spec": {"storageCapacity": True}}
        assert read(CSI_DRIVER, item) == CSIDriver("lvm", True)
        assert read(CSI_DRIVER, {"metadata": {"name": "nfs"}}) == CSIDriver("nfs", False)

    def test_claim_tells_its_class_and_where_its_volume_is_being_made(self) -> None:
        item = wire.claim("c", storageClassName="local")
        assert read_claim(item).storage_class == "local"
        annotations = {"volume.kubernetes.io/selected-node": "n1"}
        made = read_claim(with_field(item, "metadata.annotations", annotations))
        assert made.selected_node == "n1"
        annotations = {"volume.beta.kubernetes.io/storage-class": ""}
        made = read_claim(with_field(item, "metadata.annotations", annotations))
        assert made.storage_class == ""

    def test_limits_of_a_nodes_drivers_are_kept_where_there_are_any(self) -> None:
        drivers = [
            {"name": "rbd", "nodeID": "n1", "allocatable": {"count": 24}},
            {"name": "nfs", "nodeID": "n1", "allocatable": {}},
            {"name": "local", "nodeID": "n1", "allocatable": None},
        ]
        item = {"metadata": {"name": "n1"}, "spec": {"drivers": drivers}}
        assert read(CSI_NODE, item) == CSINode("n1", {"rbd": 24})
        assert read(CSI_NODE, with_field(item, "spec", {"drivers": None})) == CSINode("n1", {})

    def test_attachment_tells_the_volume_and_the_node(self) -> None:
        source = {"persistentVolumeName": "v"}
        spec = {"attacher": "rbd", "nodeName": "n1", "source": source}
        item = {"metadata": {"name": "a"}, "spec": spec}
        assert read(VOLUME_ATTACHMENT, item) == VolumeAttachment("a", "rbd", "n1", "v")
        inline = with_field(item, "spec.source", {"inlineVolumeSpec": {}})
        assert read(VOLUME_ATTACHMENT, inline) == VolumeAttachment("a", "rbd", "n1", "")

    def test_migration_policy_tells_whom_it_selects_and_what_it_sets(self) -> None:
        selectors = {
            "namespaceSelector": {"team": "a"},
            "virtualMachineInstanceSelector": {"os": "linux"},
        }
        spec = {
            "selectors": selectors,
            "bandwidthPerMigration": "64Mi",
            "completionTimeoutPerGiB": 20,
        }
        item = {"metadata": {"name": "slow"}, "spec": spec}
        assert read(MIGRATION_POLICY, item) == MigrationPolicy(
            "slow", True, {"os": "linux"}, {"team": "a"}, 64 * 2**20, 20
        )
        bare = {"metadata": {"name": "bare"}, "spec": {"selectors": {}}}
        assert read(MIGRATION_POLICY, bare) == MigrationPolicy("bare", True)
        assert read(MIGRATION_POLICY, {"metadata": {"name": "all"}}) == MigrationPolicy(
            "all", False
        )

    @pytest.mark.parametrize("resource", ["", "intel.com/sriov_netdevice"])
    def test_network_definition_tells_the_device_that_it_needs(self, resource: str) -> None:
        metadata: Json = {"name": "blue", "namespace": "shop"}
        if resource:
            metadata["annotations"] = {"k8s.v1.cni.cncf.io/resourceName": resource}
        definition = NetworkAttachmentDefinition("shop", "blue", resource)
        assert read(NETWORK_ATTACHMENT, {"metadata": metadata}) == definition

    def test_namespace_keeps_its_labels(self) -> None:
        assert read(NAMESPACE, wire.namespace("shop", team="a")) == Namespace("shop", {"team": "a"})


DEEP = b"[" * 100_000 + b"]" * 100_000
NO_LISTS = (
    *(b"", b"<html>", b"[]", b'{"items": 5}', b'{"items": [5'),
    *(b'{"items": 5, "deep": ' + DEEP + b"}", b'{"items": [' + DEEP + b"]}"),
)


class TestErrors:
    @pytest.mark.parametrize(
        ("path", "value", "field", "shown"),
        [
            ("metadata.labels", {"a": "b", "c": 5}, "metadata.labels[c]", "5"),
            ("metadata.labels", ["a"], "metadata.labels", '["a"]'),
            ("metadata.creationTimestamp", "soon", "metadata.creationTimestamp", '"soon"'),
            (
                "metadata.creationTimestamp",
                "2026-01-01T00:00:00",
                "metadata.creationTimestamp",
                "timezone",
            ),
            ("spec.nodeSelector", {"a": None}, "spec.nodeSelector[a]", "null"),
            ("spec.containers", [{}, 7], "spec.containers[1]", "7"),
            ("spec.priority", "high", "spec.priority", '"high"'),
            ("spec.volumes", [{"persistentVolumeClaim": {}}], "spec.volumes[0].pers", "claimName"),
            ("status", "x" * 500, "status", "x" * 79 + "…"),
            ("metadata.uid", "", "metadata.uid", "is missing"),
        ],
    )
    def test_wrong_type_names_object_field_and_value(
        self, path: str, value: object, field: str, shown: str
    ) -> None:
        with pytest.raises(UnreadableObjectError) as error:
            read(POD, with_field(wire.pod("p"), path, value))
        assert error.value.name == "shop/p"
        assert error.value.field.startswith(field)
        assert shown in error.value.problem

    def test_object_without_a_name_is_named_by_its_place(self) -> None:
        with pytest.raises(UnreadableObjectError, match=r"^Pod shop: metadata.name: is missing$"):
            read(POD, with_field(wire.pod("p"), "metadata.name", None))
        with pytest.raises(UnreadableObjectError, match=r"^Pod here: metadata: "):
            read(POD, with_field(wire.pod("p"), "metadata", 5))

    def test_one_bad_object_in_a_page_of_many_is_named(self) -> None:
        items = [wire.pod(f"p{i}") for i in range(500)]
        items[321]["spec"]["nodeName"] = 7
        page = msgspec.json.encode({"metadata": {"continue": "x"}, "items": items})
        with pytest.raises(UnreadableObjectError, match=r"^Pod shop/p321: spec\.nodeName: 7"):
            ObjectDecoder().decode_page(POD, page)

    def test_nothing_is_too_deep_to_be_named(self) -> None:
        metadata = b'"metadata": {"name": "p", "namespace": "shop", "uid": "u"}'
        item = b'{"spec": 5, "deep": ' + DEEP + b", " + metadata + b"}"
        with pytest.raises(UnreadableObjectError, match=r"^Pod here: "):
            ObjectDecoder().decode(POD, item, "here")

    def test_page_tells_how_to_go_on(self) -> None:
        metadata = {"continue": "next", "resourceVersion": "42"}
        page = {"metadata": metadata, "items": [wire.namespace("a")]}
        decoded = ObjectDecoder().decode_page(NAMESPACE, msgspec.json.encode(page))
        assert decoded == ([Namespace("a")], "next", "42")

    @pytest.mark.parametrize("data", NO_LISTS)
    def test_answer_that_is_no_list_is_refused(self, data: bytes) -> None:
        with pytest.raises(ClusterError, match=r"^list pods: the answer is no list"):
            ObjectDecoder().decode_page(POD, data)
