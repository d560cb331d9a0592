"""The pod that a migration asks a place for."""

from msgspec.structs import replace

from rebalancer.model.objects import Node
from rebalancer.scheduling.target_pod import target_pod
from rebalancer.scheduling.target_selectors import lacks_host_model
from tests.builders import Launched, cluster, node, vm

SKYLAKE = node("n1", labels={"host-model-required-features.node.kubevirt.io/vmx": "true"})
PLAIN = Node("n9", {}, {"kubernetes.io/hostname": "n9"})


def selector(launched: Launched, source: Node) -> dict[str, str]:
    vmi, pod = launched
    return dict(target_pod(vmi, pod, cluster(source, vmi, pod)).node_selector)


def test_a_first_move_asks_for_the_source_nodes_host_model() -> None:
    """kubevirt/kubevirt#7672"""
    asked = selector(vm("a", on="n1"), SKYLAKE)
    assert asked["cpu-model-migration.node.kubevirt.io/Skylake-Server"] == "true"
    assert asked["cpu-feature.node.kubevirt.io/vmx"] == "true"
    assert asked["cpu-vendor.node.kubevirt.io/Intel"] == "true"


def test_a_vm_that_has_moved_keeps_the_model_of_its_first_node() -> None:
    """kubevirt/kubevirt#7780"""
    model = "cpu-model-migration.node.kubevirt.io/Haswell"
    vmi, pod = vm("a", on="n1")
    moved = replace(pod, node_selector={model: "true"})
    asked = selector((vmi, moved), SKYLAKE)
    assert asked[model] == "true"
    assert "cpu-model-migration.node.kubevirt.io/Skylake-Server" not in asked


def test_a_named_cpu_model_asks_for_no_host_model() -> None:
    asked = selector(vm("a", on="n1", vmi={"has_host_model_cpu": False}), SKYLAKE)
    assert not any(key.startswith("cpu-model-migration") for key in asked)


def test_a_host_name_left_on_the_pod_does_not_pin_and_one_on_the_vmi_does() -> None:
    """harvester/harvester#10383"""
    hostname = "kubernetes.io/hostname"
    left_behind = vm("a", on="n1")
    pinned = vm("b", on="n1", node_selector={hostname: "n1"})
    vmi, pod = left_behind
    stale = replace(pod, node_selector={**pod.node_selector, hostname: "n1"})
    assert hostname not in selector((vmi, stale), SKYLAKE)
    assert selector(pinned, SKYLAKE)[hostname] == "n1"


def test_without_a_host_model_on_the_source_no_target_pod_can_be_made() -> None:
    vmi, pod = vm("a", on="n9")
    assert lacks_host_model(vmi, pod, PLAIN)
    assert not lacks_host_model(vmi, pod, SKYLAKE)
