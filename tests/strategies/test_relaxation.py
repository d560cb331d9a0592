"""What would help a VM that cannot be helped as things are."""

import pytest

from rebalancer.model.keys import OPT_OUT
from rebalancer.model.objects import Taint
from rebalancer.model.plan import Verdict
from rebalancer.model.snapshot import Snapshot
from tests.builders import Thing, cluster, node, pending_vm, pod, vm
from tests.strategies.decisions import plan_for

CORDON = (Taint("node.kubernetes.io/unschedulable", "NoSchedule"),)
FULL = (
    node("n1", memory="16Gi"),
    pod("fixed", on="n1", memory="12Gi"),
)


def cordoned(name: str, memory: str) -> Thing:
    return node(name, memory=memory, is_unschedulable=True, taints=CORDON)


def kept(name: str, *, on: str, memory: str) -> Thing:
    return vm(name, on=on, memory=memory, vmi={"annotations": {OPT_OUT: "true"}})


def advice(snapshot: Snapshot) -> list[str]:
    (goal,) = plan_for(snapshot).goals
    assert goal.verdict is Verdict.IMPOSSIBLE
    return [f"{r.node}: {r.message}" for r in goal.reasons if r.code == "would-help"]


def test_a_cordoned_node_with_room_would_help() -> None:
    snapshot = cluster(*FULL, cordoned("n2", "8Gi"), cordoned("n3", "4Gi"), pending_vm("p", "8Gi"))
    assert advice(snapshot)[0] == "n2: uncordon n2: it fits then"


def test_a_cordoned_node_that_takes_a_vm_in_the_way_would_help() -> None:
    snapshot = cluster(
        node("n1", memory="16Gi"),
        vm("a", on="n1", memory="12Gi"),
        cordoned("n2", "12Gi"),
        pending_vm("p", "16Gi"),
    )
    assert advice(snapshot)[0] == "n1: uncordon n2: it fits then after 1 migration"


def test_only_the_opt_outs_that_are_in_the_way_are_named() -> None:
    snapshot = cluster(
        node("n1", memory="16Gi"),
        node("n2", memory="8Gi"),
        kept("a", on="n1", memory="6Gi"),
        kept("b", on="n1", memory="10Gi"),
        pending_vm("p", "6Gi", node_selector={"kubernetes.io/hostname": "n1"}),
    )
    expected = f"n1: remove annotation {OPT_OUT} from default/a: it fits then after 1 migration"
    assert advice(snapshot)[0] == expected


@pytest.mark.parametrize(
    ("needed", "expected"),
    [
        ("7Gi", "n1: 3072 MiB more memory here, or as much less for the VM: it fits then"),
        ("4500Mi", "n1: 1024 MiB more memory here, or as much less for the VM: it fits then"),
    ],
)
def test_the_least_memory_that_is_lacking_is_told_in_whole_gibibytes(
    needed: str, expected: str
) -> None:
    assert advice(cluster(*FULL, pending_vm("p", needed))) == [expected]


def test_memory_that_is_lacking_after_all_migrations_is_told() -> None:
    snapshot = cluster(
        node("n1", memory="16Gi"),
        node("n2", memory="6Gi"),
        pod("fixed", on="n1", memory="8Gi"),
        vm("a", on="n1", memory="6Gi"),
        pending_vm("p", "10Gi"),
    )
    told = "2048 MiB more memory here, or as much less for the VM: it fits then after 1 migration"
    assert f"n1: {told}" in advice(snapshot)


def test_the_smallest_vm_of_no_higher_priority_would_help_by_stopping() -> None:
    snapshot = cluster(
        node("n1", memory="16Gi"),
        vm("small", on="n1", memory="2Gi"),
        vm("important", on="n1", memory="6Gi", priority=10),
        vm("large", on="n1", memory="8Gi"),
        pending_vm("p", "4Gi"),
    )
    assert advice(snapshot)[-1] == "n1: stop VM default/large (8192 MiB): it fits then"


def test_nothing_is_advised_where_no_single_change_helps() -> None:
    """Two resources are short, and no VM is there to be stopped."""
    snapshot = cluster(
        node("n1", memory="4Gi", cpu="2"),
        pod("fixed", on="n1", memory="2Gi", cpu="2"),
        pending_vm("p", "4Gi", cpu="1"),
    )
    assert advice(snapshot) == []


def test_a_vm_that_has_not_opted_out_is_not_asked_to_opt_in() -> None:
    """The annotation with `false` is none."""
    willing = vm("b", on="n1", memory="4Gi", vmi={"annotations": {OPT_OUT: "false"}})
    snapshot = cluster(
        node("n1", memory="16Gi"),
        node("n2", memory="10Gi"),
        kept("a", on="n1", memory="6Gi"),
        willing,
        pending_vm("p", "16Gi"),
    )
    told = f"n1: remove annotation {OPT_OUT} from default/a: it fits then after 2 migrations"
    assert advice(snapshot)[0] == told
