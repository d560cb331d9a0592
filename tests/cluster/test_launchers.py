"""What a VMI and the KubeVirt CR say about launcher pods."""

from typing import Any

import msgspec
import pytest

from rebalancer.cluster.decode import ObjectDecoder
from rebalancer.cluster.kinds import KUBEVIRT, VMI
from rebalancer.model.objects import LauncherSpec, ObjectKey
from tests.cluster import wire_builders as wire


def read(kind: Any, item: wire.Json) -> Any:
    return ObjectDecoder().decode(kind, msgspec.json.encode(item), "here")


def spec_of(vmi: wire.Json) -> LauncherSpec:
    launcher: LauncherSpec = read(VMI, vmi).launcher
    return launcher


@pytest.mark.parametrize(
    ("network", "found"),
    [
        ({"multus": {"networkName": "blue"}}, (ObjectKey("shop", "blue"),)),
        ({"multus": {"networkName": "infra/blue"}}, (ObjectKey("infra", "blue"),)),
        ({"pod": {}}, ()),
    ],
)
def test_networks_are_named_with_the_namespace_of_their_definitions(
    network: wire.Json, found: tuple[ObjectKey, ...]
) -> None:
    vmi = wire.vmi("web", networks=[{"name": "n", **network}])
    assert spec_of(vmi).networks == found


PLUGGED_IN = {"volumeStatus": [{"name": "v", "hotplugVolume": {}}]}


@pytest.mark.parametrize(
    ("source", "status", "claims"),
    [
        ({"persistentVolumeClaim": {"claimName": "c", "hotpluggable": True}}, {}, ("c",)),
        ({"dataVolume": {"name": "c", "hotpluggable": True}}, {}, ("c",)),
        ({"memoryDump": {"claimName": "c", "hotpluggable": True}}, {}, ("c",)),
        ({"persistentVolumeClaim": {"claimName": "c"}}, PLUGGED_IN, ("c",)),
        ({"persistentVolumeClaim": {"claimName": "c"}}, {}, ()),
        ({"dataVolume": {"name": "c", "hotpluggable": False}}, {}, ()),
        ({"containerDisk": {"image": "i"}}, PLUGGED_IN, ()),
    ],
)
def test_volumes_are_hot_plugged_that_are_marked_so_or_that_kubevirt_has_plugged_in(
    source: wire.Json, status: wire.Json, claims: tuple[str, ...]
) -> None:
    vmi = wire.vmi("web", status=status, volumes=[{"name": "v", **source}])
    assert spec_of(vmi).hotplugged_claims == claims


def test_settings_for_attachment_pods_replace_the_defaults_one_by_one() -> None:
    resources = {"requests": {"cpu": "20m"}, "limits": {"memory": "1M"}}
    kubevirt = wire.kubevirt()
    kubevirt["spec"]["configuration"]["supportContainerResources"] = [
        {"type": "hotplug-disk", "resources": resources}
    ]
    launchers = read(KUBEVIRT, kubevirt).launchers
    assert launchers.attachment_requests == {"cpu": 20, "memory": 2_000_000}
    assert launchers.attachment_limits == {"cpu": 100, "memory": 1_000_000}
    assert launchers.console_log_requests == {"cpu": 5, "memory": 35_000_000}
