"""What is left out of a cluster has no say."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebalancer.model.keys import ZONE
from rebalancer.model.objects import (
    LabelSelector,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodAffinityTerm,
    Requirement,
    TopologySpreadConstraint,
    VirtualMachineInstance,
)
from rebalancer.model.snapshot import Snapshot
from rebalancer.scheduling.feasibility import evaluate
from rebalancer.scheduling.narrowing import narrowed
from rebalancer.scheduling.state import ClusterState
from rebalancer.scheduling.target_pod import target_pod
from tests.builders import Thing, cluster, node, pod, vm
from tests.planning.clusters import NODES
from tests.planning.test_view import crowds


def arriving(vmi: VirtualMachineInstance, snapshot: Snapshot) -> Pod:
    """The pod that it waits in, or that a migration would make for it."""
    launcher = snapshot.launchers_by_vmi[vmi.uid][0]
    return target_pod(vmi, launcher, snapshot) if launcher.node_name else launcher


@settings(max_examples=300)
@given(crowds(), st.data())
def test_what_bars_pods_from_nodes_is_the_same_in_the_part_that_concerns_them(
    snapshot: Snapshot, data: st.DataObject
) -> None:
    vmis = data.draw(st.lists(st.sampled_from(snapshot.vmis), min_size=1, unique_by=id))
    nodes = data.draw(st.sets(st.sampled_from(NODES), min_size=1))
    pods = [arriving(vmi, snapshot) for vmi in vmis]
    part = ClusterState(narrowed(snapshot, pods, nodes))
    whole = ClusterState(snapshot)
    for each in pods:
        there, here = evaluate(each, whole), evaluate(each, part)
        for name in nodes:
            index, index_here = whole.index[name], part.index[name]
            assert here.feasible[index_here] == there.feasible[index]
            assert {*here.reasons(index_here)} == {*there.reasons(index)}


def test_pods_elsewhere_that_no_rule_ties_to_those_that_come_are_left_out() -> None:
    snapshot = cluster(
        *(node(name) for name in ("n1", "n2", "n3", "n4")),
        vm("a", on="n1"),
        vm("b", on="n2"),
        vm("c", on="n3"),
        pod("expected"),
    )
    part = narrowed(snapshot, [arriving(snapshot.vmis[0], snapshot)], {"n2"})
    assert {each.name for each in part.pods} == {"expected", "virt-launcher-a", "virt-launcher-b"}
    assert {vmi.name for vmi in part.vmis} == {"a", "b"}
    assert [each.name for each in part.nodes] == ["n1", "n2"]


def _apart(key: str) -> PodAffinityTerm:
    """From pods of the group, in the same domain of that key."""
    return PodAffinityTerm(key, LabelSelector((Requirement("group", "In", ("a",)),)), ("default",))


_GROUP: dict[str, Any] = {"labels": {"group": "a"}}
_CLAIM = PersistentVolumeClaim(
    "default", "data", volume_name="pv", is_bound=True, is_read_write_once_pod=True
)
_SPREAD = TopologySpreadConstraint(ZONE, 1, _apart(ZONE).selector)

TIES: dict[str, tuple[bool, list[Thing]]] = {
    "a pod elsewhere has its claim": (
        False,
        [
            *(_CLAIM, PersistentVolume("pv")),
            pod("user", on="n2", claim_names=("data",)),
            pod("p", claim_names=("data",)),
        ],
    ),
    "its anti-affinity means a pod in the zone": (
        False,
        [pod("other", on="n2", **_GROUP), pod("p", pod_anti_affinity=(_apart(ZONE),))],
    ),
    "its affinity is met by a pod in the zone": (
        True,
        [pod("other", on="n2", **_GROUP), pod("p", pod_affinity=(_apart(ZONE),))],
    ),
    "a pod in the zone keeps it off": (
        False,
        [pod("other", on="n2", pod_anti_affinity=(_apart(ZONE),)), pod("p", **_GROUP)],
    ),
    "a pod that is expected in the zone keeps it off": (
        False,
        [
            pod("other", nominated_node_name="n2", pod_anti_affinity=(_apart(ZONE),)),
            pod("p", **_GROUP),
        ],
    ),
    "an empty zone has fewer pods of the group": (
        False,
        [pod("other", on="n2", **_GROUP), pod("p", **_GROUP, topology_spread=(_SPREAD,))],
    ),
}


@pytest.mark.parametrize(("fits", "things"), TIES.values(), ids=TIES.keys())
def test_what_is_tied_to_a_pod_that_comes_has_a_say_wherever_it_is(
    fits: bool, things: list[Thing]
) -> None:
    zones = {"n1": "z1", "n2": "z1", "n3": "z2"}
    nodes = [node(name, labels={ZONE: zone}) for name, zone in zones.items()]
    snapshot = cluster(*nodes, *things)
    coming = snapshot.pods[-1]
    part = ClusterState(narrowed(snapshot, [coming], {"n1"}))
    assert evaluate(coming, part).feasible[part.index["n1"]] == fits
