"""The pod that a migration asks a place for."""

from msgspec.structs import replace

from rebalancer.model.objects import LauncherSpec, Node
from rebalancer.scheduling.target_pod import target_pod
from rebalancer.scheduling.target_selectors import lacks_host_model
from tests.builders import Launched, cluster, node, pod, vm

SKYLAKE = node("n1", labels={"host-model-required-features.node.kubevirt.io/vmx": "true"})
PLAIN = Node("n9", {}, {"kubernetes.io/hostname": "n9"})


def selector(launched: Launched, source: Node) -> dict[str, str]:
    vmi, launcher = launched
    return dict(target_pod(vmi, launcher, cluster(source, vmi, launcher)).node_selector)


def test_a_first_move_asks_for_the_source_nodes_host_model() -> None:
    """kubevirt/kubevirt#7672"""
    asked = selector(vm("a", on="n1"), SKYLAKE)
    assert asked["cpu-model-migration.node.kubevirt.io/Skylake-Server"] == "true"
    assert asked["cpu-feature.node.kubevirt.io/vmx"] == "true"
    assert asked["cpu-vendor.node.kubevirt.io/Intel"] == "true"


def test_a_vm_that_has_moved_keeps_the_model_of_its_first_node() -> None:
    """kubevirt/kubevirt#7780"""
    model = "cpu-model-migration.node.kubevirt.io/Haswell"
    vmi, launcher = vm("a", on="n1")
    moved = replace(launcher, node_selector={model: "true"})
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
    vmi, launcher = left_behind
    stale = replace(launcher, node_selector={**launcher.node_selector, hostname: "n1"})
    assert hostname not in selector((vmi, stale), SKYLAKE)
    assert selector(pinned, SKYLAKE)[hostname] == "n1"


def test_without_a_host_model_on_the_source_no_target_pod_can_be_made() -> None:
    vmi, launcher = vm("a", on="n9")
    assert lacks_host_model(vmi, launcher, PLAIN)
    assert not lacks_host_model(vmi, launcher, SKYLAKE)


def test_a_volume_just_plugged_in_brings_a_pod_that_is_not_there_yet() -> None:
    """kubevirt/kubevirt#13523"""
    plugged_in = LauncherSpec(hotplugged_claims=("new",))
    vmi, launcher = vm("a", on="n1", vmi={"launcher": plugged_in}, claim_names=("root",))
    target = target_pod(vmi, launcher, cluster(SKYLAKE, vmi, launcher))
    assert target.claim_names == ("root", "new")
    assert target.requests["pods"] == 2
    assert target.requests["memory"] == launcher.requests["memory"] + 2_000_000


def test_one_pod_brings_all_volumes_and_is_not_smaller_than_those_that_go() -> None:
    plugged_in = LauncherSpec(hotplugged_claims=("one", "two"))
    vmi, launcher = vm("a", on="n1", vmi={"launcher": plugged_in})
    present = pod(
        "hp", on="n1", memory="1Gi", cpu="1m", attached_to=launcher.uid, claim_names=("one",)
    )
    snapshot = cluster(SKYLAKE, vmi, launcher, present)
    target = target_pod(vmi, launcher, snapshot)
    assert target.claim_names == ("one", "two")
    assert target.requests["pods"] == 2
    assert target.requests["memory"] == launcher.requests["memory"] + 2**30
    assert target.requests["cpu"] == launcher.requests["cpu"] + 10
