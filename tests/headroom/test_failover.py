"""Whether the VMs of a lost node or zone start again on the rest."""

from rebalancer.headroom.failover import (
    Failover,
    LossOutcome,
    ResourceShortage,
    SlotShortage,
    Verdict,
    failover,
    node_domains,
)
from rebalancer.model.snapshot import Snapshot
from rebalancer.scheduling.state import ClusterState
from tests.builders import cluster, key, node, vm


def after_node_losses(snapshot: Snapshot, min_priority: int | None = None) -> Failover:
    state = ClusterState(snapshot)
    return failover(state, node_domains(state), min_priority=min_priority)


def losing(name: str, snapshot: Snapshot) -> LossOutcome:
    return next(loss for loss in after_node_losses(snapshot).losses if loss.domain == name)


def test_vms_start_again_where_the_rest_has_room() -> None:
    snapshot = cluster(node("n1", "16Gi"), node("n2", "16Gi"), vm("a", on="n1", memory="10Gi"))
    assert [loss.verdict for loss in after_node_losses(snapshot).losses] == [Verdict.SURVIVES] * 2


def test_vm_too_large_for_every_hole_is_left_down_with_the_numbers() -> None:
    snapshot = cluster(
        node("n1", "16Gi"),
        node("n2", "16Gi"),
        node("n3", "16Gi"),
        vm("a", on="n1", memory="10Gi"),
        vm("b", on="n2", memory="8Gi"),
        vm("c", on="n3", memory="8Gi"),
    )
    lost = losing("n1", snapshot)
    assert lost.verdict is Verdict.LEAVES_DOWN
    assert [left.vmi for left in lost.left_down] == [key("a")]
    assert isinstance(lost.shortage, SlotShortage)
    assert (lost.shortage.vms, lost.shortage.slots, lost.shortage.nodes) == (1, 0, 2)
    assert lost.shortage.requests["memory"] == 10 * 2**30


def test_vms_that_together_are_too_large_are_left_down_with_the_sum() -> None:
    snapshot = cluster(
        node("n1", "16Gi"),
        node("n2", "16Gi"),
        vm("a", on="n1", memory="9Gi"),
        vm("b", on="n1", memory="5Gi"),
        vm("c", on="n2", memory="4Gi"),
    )
    lost = losing("n1", snapshot)
    assert isinstance(lost.shortage, ResourceShortage)
    assert lost.shortage.requested == 14 * 2**30
    assert lost.shortage.headroom == 12 * 2**30


def test_larger_class_finds_its_room_before_a_lower_one() -> None:
    snapshot = cluster(
        node("n1", "16Gi"),
        node("n2", "9Gi"),
        vm("low", on="n1", memory="8Gi"),
        vm("high", on="n1", memory="6Gi", priority=10),
    )
    assert [left.vmi for left in losing("n1", snapshot).left_down] == [key("low")]


def test_vms_below_the_least_priority_are_not_asked_about() -> None:
    snapshot = cluster(
        node("n1", "16Gi"),
        node("n2", "9Gi"),
        vm("low", on="n1", memory="8Gi"),
        vm("high", on="n1", memory="6Gi", priority=10),
    )
    lost, _ = after_node_losses(snapshot, min_priority=10).losses
    assert (lost.verdict, lost.vms) == (Verdict.SURVIVES, 1)


def test_vm_that_can_run_nowhere_else_is_tied_and_no_lack_of_room() -> None:
    snapshot = cluster(
        node("n1", labels={"gpu": "yes"}),
        node("n2"),
        vm("a", on="n1", node_selector={"gpu": "yes"}),
    )
    lost = losing("n1", snapshot)
    assert (lost.verdict, lost.tied) == (Verdict.SURVIVES, (key("a"),))
