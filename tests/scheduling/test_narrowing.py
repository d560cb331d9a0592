"""What is left out of a cluster has no say."""

from hypothesis import given
from hypothesis import strategies as st

from rebalancer.model.snapshot import Snapshot
from rebalancer.scheduling.feasibility import evaluate
from rebalancer.scheduling.narrowing import narrowed
from rebalancer.scheduling.state import ClusterState
from rebalancer.scheduling.target_pod import target_pod
from tests.builders import cluster, node, pod, vm
from tests.planning.clusters import NODES, clusters


@given(clusters(), st.data())
def test_what_bars_pods_from_nodes_is_the_same_in_the_part_that_concerns_them(
    snapshot: Snapshot, data: st.DataObject
) -> None:
    vmis = data.draw(st.lists(st.sampled_from(snapshot.vmis), min_size=1, unique_by=id))
    nodes = data.draw(st.sets(st.sampled_from(NODES), min_size=1))
    pods = [target_pod(vmi, snapshot.launchers_by_vmi[vmi.uid][0], snapshot) for vmi in vmis]
    part = ClusterState(narrowed(snapshot, pods, nodes))
    whole = ClusterState(snapshot)
    for each in pods:
        there, here = evaluate(each, whole), evaluate(each, part)
        for name in nodes:
            index = whole.index[name]
            assert here.feasible[index] == there.feasible[index]
            assert {*here.reasons(index)} == {*there.reasons(index)}


def test_pods_elsewhere_that_no_rule_ties_to_those_that_come_are_left_out() -> None:
    snapshot = cluster(
        *(node(name) for name in ("n1", "n2", "n3")),
        vm("a", on="n1"),
        vm("b", on="n2"),
        vm("c", on="n3"),
        pod("expected"),
    )
    a = snapshot.vmis[0]
    arriving = target_pod(a, snapshot.launchers_by_vmi[a.uid][0], snapshot)
    part = narrowed(snapshot, [arriving], {"n2"})
    assert {each.name for each in part.pods} == {"expected", "virt-launcher-a", "virt-launcher-b"}
    assert {vmi.name for vmi in part.vmis} == {"a", "b"}
    assert part.nodes == snapshot.nodes
