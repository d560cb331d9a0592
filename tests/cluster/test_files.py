"""Dumps of every form that people have give the same snapshot, or an error that says what to do."""

import io
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from rebalancer.cluster.files import FilesSource
from rebalancer.errors import InputError, UnreadableObjectError
from rebalancer.model.objects import MigrationConfiguration
from rebalancer.model.snapshot import Snapshot
from tests.cluster import wire_builders as wire
from tests.cluster.wire_builders import Json, as_list

OBJECTS = [
    wire.node("n2"),
    wire.node("n1", {"cpu": "4", "memory": "0.5Gi", "pods": 20}),
    wire.launcher("web", nodeName="n1", nodeSelector={"kubevirt.io/schedulable": "true"}),
    wire.pod("db", namespace="a-shop", labels={"empty": "", "flag": "true", "off": "Off"}),
    wire.vmi("web", status={"conditions": [{"type": "LiveMigratable", "status": "True"}]}),
    wire.migration("m1", "web", phase="Succeeded"),
    wire.kubevirt(parallelMigrationsPerCluster=7),
    wire.claim("disk", "pv-1"),
    wire.volume("pv-1", labels={"topology.kubernetes.io/zone": "a"}),
    wire.namespace("shop", team="a"),
    wire.quota("quota", {"requests.memory": "64Gi"}, {"requests.memory": "1Gi"}),
    wire.limit_range("limits", {"type": "Container", "max": {"memory": "32Gi"}}),
    wire.disruption_budget("budget", {"app": "web"}),
]
STORAGE_KINDS = ("StorageClass", "CSIDriver", "CSINode", "VolumeAttachment")
LIST_OF = {
    "Node": ("NodeList", "v1"),
    "Pod": ("PodList", "v1"),
    "VirtualMachineInstance": ("VirtualMachineInstanceList", "kubevirt.io/v1"),
}


def read(*paths: Path) -> Snapshot:
    return FilesSource(paths).read()


def write(folder: Path, name: str, content: str | Json) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


@pytest.fixture
def reference(tmp_path: Path) -> Snapshot:
    return read(write(tmp_path, "reference.json", as_list(*OBJECTS)))


class TestForms:
    def test_json_list(self, reference: Snapshot) -> None:
        assert [node.name for node in reference.nodes] == ["n1", "n2"]
        assert [str(pod.key) for pod in reference.pods] == ["a-shop/db", "shop/virt-launcher-web"]
        assert reference.vmis[0].live_migratable is not None
        assert reference.migrations[0].vmi_name == "web"
        assert reference.migration_configuration == MigrationConfiguration(7)
        assert reference.claims[0].volume_name == reference.volumes[0].name
        assert reference.labels_by_namespace == {"shop": {"team": "a"}}
        assert reference.quotas[0].hard == {"requests.memory": 64 * 2**30}
        assert reference.limit_ranges[0].items[0].max == {"memory": 32 * 2**30}
        assert reference.disruption_budgets[0].name == "budget"
        assert reference.missing == ("MigrationPolicy", *STORAGE_KINDS)

    def test_yaml_list(self, tmp_path: Path, reference: Snapshot) -> None:
        assert read(write(tmp_path, "dump.yaml", yaml.dump(as_list(*OBJECTS)))) == reference

    def test_yaml_documents(self, tmp_path: Path, reference: Snapshot) -> None:
        text = "---\n" + yaml.dump_all(reversed(OBJECTS))
        assert read(write(tmp_path, "dump.yml", text)) == reference

    def test_json_documents_one_after_the_other(self, tmp_path: Path, reference: Snapshot) -> None:
        """As `kubectl get nodes -o json > f; kubectl get pods -o json >> f` leaves them."""
        text = "\n".join(json.dumps(item, indent=4) for item in OBJECTS)
        assert read(write(tmp_path, "dump.json", text)) == reference

    def test_bare_items(self, tmp_path: Path, reference: Snapshot) -> None:
        assert read(write(tmp_path, "dump.json", {"items": OBJECTS})) == reference

    def test_typed_lists_whose_items_have_no_kind(
        self, tmp_path: Path, reference: Snapshot
    ) -> None:
        rest = [item for item in OBJECTS if item["kind"] not in LIST_OF]
        files = [write(tmp_path, "rest.json", as_list(*rest))]
        for kind, (list_kind, api_version) in LIST_OF.items():
            items = [
                {key: item[key] for key in ("metadata", "spec", "status")}
                for item in OBJECTS
                if item["kind"] == kind
            ]
            content = as_list(*items, kind=list_kind, api_version=api_version)
            files.append(write(tmp_path, f"{kind}.json", content))
        assert read(*files) == reference

    def test_must_gather_folder(self, tmp_path: Path, reference: Snapshot) -> None:
        root = tmp_path / "must-gather" / "quay-io-image-sha256"
        n2, n1, launcher, db, vmi, migration, kubevirt, claim, volume, *in_namespace = OBJECTS
        namespace, quota, limit_range, budget = in_namespace
        for node in (n1, n2):
            name = node["metadata"]["name"]
            write(root, f"cluster-scoped-resources/core/nodes/{name}.yaml", dumped(node))
        write(root, "cluster-scoped-resources/core/persistentvolumes/pv-1.yaml", dumped(volume))
        write(root, "cluster-scoped-resources/config.openshift.io/nodes.yaml", FOREIGN_NODES)
        write(root, "namespaces/shop/shop.yaml", dumped(namespace))
        write(root, "namespaces/shop/core/pods.yaml", dumped(as_list(launcher, kind="PodList")))
        write(root, "namespaces/shop/core/persistentvolumeclaims.yaml", dumped(as_list(claim)))
        write(root, "namespaces/shop/core/resourcequotas.yaml", dumped(as_list(quota)))
        write(root, "namespaces/shop/core/limitranges.yaml", dumped(as_list(limit_range)))
        write(root, "namespaces/shop/policy/poddisruptionbudgets.yaml", dumped(as_list(budget)))
        write(root, "namespaces/a-shop/pods/db/db.yaml", dumped(db))
        write(root, "namespaces/a-shop/pods/db/logs/current.log", "{ not read")
        write(root, "namespaces/a-shop/core/configmaps.yaml", dumped(CONFIG_MAPS))
        write(root, "namespaces/a-shop/core/pods.yaml", dumped(as_list(kind="PodList")))
        write(root, "namespaces/kubevirt/kubevirt.io/kubevirts.yaml", dumped(as_list(kubevirt)))
        for plural, item in (("s", vmi), ("migrations", migration)):
            path = f"namespaces/shop/kubevirt.io/virtualmachineinstance{plural}.yaml"
            write(root, path, dumped(as_list(item, kind=f"{item['kind']}List")))
        write(root, "etcd_info/endpoint_health.json", "[]")
        write(root, "monitoring/rules.json", '{"status": "success", "data": {"items": []}}')
        write(root, "monitoring/targets.json", '{"items": [{"health": "up"}]}')
        write(root, "empty.yaml", "")
        write(root, "timestamp", "not read: no suffix")
        assert read(tmp_path / "must-gather") == reference

    def test_standard_input(
        self, tmp_path: Path, reference: Snapshot, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = write(tmp_path, "dump.yaml", yaml.dump(as_list(*OBJECTS)))
        stdin = SimpleNamespace(buffer=io.BytesIO(file.read_bytes()))
        monkeypatch.setattr(sys, "stdin", stdin)
        assert read(Path("-")) == reference

    @pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
    def test_byte_order_marks_of_windows(
        self, tmp_path: Path, reference: Snapshot, encoding: str
    ) -> None:
        file = tmp_path / "dump.json"
        file.write_text(json.dumps(as_list(*OBJECTS)), encoding=encoding)
        assert read(file) == reference

    def test_yaml_that_starts_with_a_brace(self, tmp_path: Path, reference: Snapshot) -> None:
        text = yaml.dump(as_list(*OBJECTS), default_flow_style=True)
        assert text.startswith("{")
        assert read(write(tmp_path, "dump.yaml", text)) == reference

    def test_fields_that_are_long_null_or_unknown_change_nothing(
        self, tmp_path: Path, reference: Snapshot
    ) -> None:
        noisy = [json.loads(json.dumps(item)) for item in OBJECTS]
        for item in noisy:
            item["metadata"]["managedFields"] = [{"fieldsV1": {"f:metadata": {}}}] * 50
            item["metadata"]["deletionTimestamp"] = None
            item["metadata"]["finalizers"] = None
            item["unheard-of"] = [1.5, None, {"a": []}]
        assert read(write(tmp_path, "dump.json", as_list(*noisy))) == reference

    def test_same_object_twice_is_one(self, tmp_path: Path, reference: Snapshot) -> None:
        first = write(tmp_path, "a.json", as_list(*OBJECTS))
        second = write(tmp_path, "b.yaml", yaml.dump(as_list(*OBJECTS[2:])))
        assert read(first, second) == reference


def dumped(content: Json) -> str:
    return "---\n" + yaml.dump(content)


FOREIGN_NODES = dumped(
    {"apiVersion": "config.openshift.io/v1", "kind": "Node", "metadata": {"name": "cluster"}}
)
CONFIG_MAPS = as_list({"data": {"a": "b"}}, kind="ConfigMapList")


class TestTime:
    def test_snapshot_is_taken_at_the_latest_time_in_the_dump(self, tmp_path: Path) -> None:
        objects = [wire.node("n1"), wire.pod("p"), wire.vmi("v")]
        ready = objects[0]["status"]["conditions"][0]
        ready["lastHeartbeatTime"] = "2026-11-02T09:00:00.5+01:00"
        snapshot = read(write(tmp_path, "dump.json", as_list(*objects)))
        assert snapshot.taken_at == datetime(2026, 11, 2, 8, 0, 0, 500_000, tzinfo=UTC)

    def test_end_of_a_migration_counts_and_a_deletion_to_come_does_not(
        self, tmp_path: Path
    ) -> None:
        ended = {"phase": "Failed", "phaseTransitionTimestamp": "2026-11-03T00:00:00Z"}
        objects = [
            wire.node("n1"),
            wire.pod("p"),
            wire.vmi("v"),
            wire.migration("m", "v", phaseTransitionTimestamps=[ended]),
        ]
        objects[1]["metadata"]["deletionTimestamp"] = "2027-01-01T00:00:00Z"
        snapshot = read(write(tmp_path, "dump.json", as_list(*objects)))
        assert snapshot.taken_at == datetime(2026, 11, 3, tzinfo=UTC)

    def test_dump_without_any_time_has_a_fixed_one(self, tmp_path: Path) -> None:
        objects = [wire.node("n1"), wire.pod("p"), wire.vmi("v")]
        for item in objects:
            item["metadata"]["creationTimestamp"] = None
        objects[0]["status"]["conditions"][0]["lastTransitionTime"] = None
        snapshot = read(write(tmp_path, "dump.json", as_list(*objects)))
        assert snapshot.taken_at == datetime(2000, 1, 1, tzinfo=UTC)


class TestWhatIsLacking:
    def test_kinds_that_the_dump_lacks_are_named(self, tmp_path: Path) -> None:
        snapshot = read(
            write(tmp_path, "dump.json", as_list(*OBJECTS[:5])),
            write(tmp_path, "ns.json", as_list(kind="NamespaceList")),
        )
        assert snapshot.missing == (
            "KubeVirt",
            "MigrationPolicy",
            "LimitRange",
            "PodDisruptionBudget",
            "PersistentVolume",
            "PersistentVolumeClaim",
            *STORAGE_KINDS,
            "ResourceQuota",
            "VirtualMachineInstanceMigration",
        )

    def test_network_definitions_are_missed_only_where_a_vm_has_a_network(
        self, tmp_path: Path, reference: Snapshot
    ) -> None:
        attached = wire.vmi("web", networks=[{"name": "n", "multus": {"networkName": "blue"}}])
        objects = (item for item in OBJECTS if item["kind"] != attached["kind"])
        snapshot = read(write(tmp_path, "dump.json", as_list(*objects, attached)))
        assert {*snapshot.missing} - {*reference.missing} == {"NetworkAttachmentDefinition"}

    def test_dump_without_pods_says_which_command_prints_them(self, tmp_path: Path) -> None:
        event = {"apiVersion": "v1", "kind": "Event"}
        file = write(tmp_path, "dump.json", as_list(wire.node("n1"), wire.vmi("v"), event))
        with pytest.raises(InputError) as error:
            read(file)
        assert str(error.value) == (
            f"{file}: no Pod among the 3 objects there; add what this prints: kubectl get pods"
            " --all-namespaces -o json"
        )

    def test_empty_list_of_vmis_says_that_there_are_none(self, tmp_path: Path) -> None:
        nodes = write(tmp_path, "a.json", as_list(wire.node("n1"), wire.pod("p")))
        vmis = as_list(kind="VirtualMachineInstanceList", api_version="kubevirt.io/v1")
        assert read(nodes, write(tmp_path, "b.json", vmis)).vmis == ()

    def test_folder_without_anything_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="no Node and no Pod and no VirtualMachineInstance"):
            read(tmp_path)


class TestErrors:
    def refused(self, file: Path) -> str:
        with pytest.raises(InputError) as error:
            read(file)
        return str(error.value).removeprefix(str(file))

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("a.json", '{"kind": "List",\n "items": [{"kind": "Po', ":2:21: Unterminated string"),
            ("a.json", '{"kind": "List"}\n{"kind": ', ":2:10: Expecting value"),
            ("a.json", '{"a": NaN}', ": JSON is malformed"),
            ("a.json", '{"a": ' + "[" * 50_000, ": maximum recursion depth exceeded"),
            ("a.yaml", "kind: List\nitems:\n- kind: [", ":4:1: did not find expected"),
            ("a.yaml", "kind: Pod\nkind: Pod\n", ":2:1: the key 'kind' occurs twice"),
            ("a.yaml", "{kind: Pod", ":2:1: did not find expected"),
            ("a.yaml", "", ": is empty"),
            ("a.json", "Error from server (Forbidden)", ": not a Kubernetes object: "),
            ("a.json", "[1]", ": not a Kubernetes object: the object: [1]: expected `object`"),
            ("a.json", '{"items": [{}]}', ": not a Kubernetes object: neither the list nor"),
            ("a.json", '{"items": 5}', ": not a Kubernetes object: items: 5: expected"),
            ("a.json", '{"kind": "List", "items": 5}', ": List: items: 5: expected `array"),
            ("a.json", '{"kind": "List", "items": [5]}', ", item 1: not a Kubernetes object"),
            ("a.json", '{"kind": "List", "items": [{}]}', ", item 1: it has no kind, nor does"),
            ("a.json", '{"kind": "Pod"}', ": a Pod without apiVersion"),
            ("a.yaml", "a: 1\n---\nb: 2", ", document 1: not a Kubernetes object: it has neither"),
        ],
    )
    def test_file_that_cannot_be_read_is_named_with_the_place(
        self, tmp_path: Path, name: str, content: str, message: str
    ) -> None:
        assert self.refused(write(tmp_path, name, content)).startswith(message)

    def test_bytes_that_are_no_text_name_the_line(self, tmp_path: Path) -> None:
        file = tmp_path / "a.yaml"
        file.write_bytes(b"kind: Pod\nname: \xff\n")
        assert self.refused(file).startswith(":2: not UTF-8")
        file.write_bytes(b"\xff\xfea")
        assert self.refused(file).startswith(": not UTF-16")

    def test_missing_file_is_named(self, tmp_path: Path) -> None:
        assert "No such file" in self.refused(tmp_path / "nowhere.json")

    def test_unreadable_value_names_object_field_value_and_place(self, tmp_path: Path) -> None:
        bad = wire.pod("p", wire.container(memory="12Qi"))
        file = write(tmp_path, "a.yaml", yaml.dump_all([wire.node("n1"), as_list(bad)]))
        with pytest.raises(UnreadableObjectError) as error:
            read(file)
        assert str(error.value) == (
            "Pod shop/p: spec.containers[0].resources.requests.memory: '12Qi' is not a quantity"
            f" (such as 500m, 16G, 1.5Gi or 1e3) (in {file}, document 2, item 1)"
        )

    def test_time_that_only_dates_the_dump_must_be_readable_too(self, tmp_path: Path) -> None:
        node = wire.node("n1")
        node["status"]["conditions"][0]["lastHeartbeatTime"] = "soon"
        with pytest.raises(UnreadableObjectError, match=r"Node n1: .*lastHeartbeatTime: \"soon\""):
            read(write(tmp_path, "a.json", node))

    def test_same_object_with_two_contents_names_both_places(self, tmp_path: Path) -> None:
        old = write(tmp_path, "old.json", as_list(*OBJECTS))
        new = write(tmp_path, "new.json", wire.launcher("web", nodeName="n2"))
        with pytest.raises(InputError) as error:
            read(old, new)
        assert str(error.value) == (
            f"Pod shop/virt-launcher-web is there twice, and differs: in {old}, item 3 and in"
            f" {new}; remove the older one"
        )

    def test_settings_of_two_kubevirts_contradict_each_other(self, tmp_path: Path) -> None:
        second = wire.kubevirt(parallelMigrationsPerCluster=1)
        with pytest.raises(InputError, match="KubeVirt is there twice"):
            read(write(tmp_path, "a.json", as_list(*OBJECTS, second)))
