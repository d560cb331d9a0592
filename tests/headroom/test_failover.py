"""Whether the VMs of a lost node or zone start again on the rest."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rebalancer.headroom.failover import (
    Failover,
    LossOutcome,
    ResourceShortage,
    SlotShortage,
    Verdict,
    failover,
    node_domains,
    zone_domains,
)
from rebalancer.model.keys import HOSTNAME, MIGRATION_JOB_UID, ZONE
from rebalancer.model.objects import (
    CSINode,
    CsiVolume,
    LabelSelector,
    PersistentVolume,
    PersistentVolumeClaim,
    PodAffinityTerm,
    Requirement,
    Taint,
)
from rebalancer.model.snapshot import Snapshot
from rebalancer.scheduling.own_launchers import off_its_launchers
from rebalancer.scheduling.state import ClusterState
from tests.builders import cluster, key, migrating, node, pod, vm
from tests.headroom.brute_force import can_all_start

GIB = 2**30


def after_node_losses(snapshot: Snapshot, **options: Any) -> Failover:
    state = ClusterState(snapshot)
    return failover(state, node_domains(state), **options)


def losing(name: str, snapshot: Snapshot, **options: Any) -> LossOutcome:
    losses = after_node_losses(snapshot, **options).losses
    return next(loss for loss in losses if loss.domain == name)


def losing_zone(name: str, snapshot: Snapshot) -> LossOutcome:
    state = ClusterState(snapshot)
    return next(loss for loss in failover(state, zone_domains(state)).losses if loss.domain == name)


def left_down(loss: LossOutcome) -> list[str]:
    return [left.vmi.name for left in loss.left_down]


def apart(topology_key: str = HOSTNAME, group: str = "db") -> dict[str, Any]:
    """Of a VM that keeps off those of its group."""
    selector = LabelSelector((Requirement("group", "In", (group,)),))
    term = PodAffinityTerm(topology_key, selector, namespaces=("default",))
    return {"labels": {"group": group}, "pod_anti_affinity": (term,)}


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
    assert (lost.verdict, left_down(lost)) == (Verdict.LEAVES_DOWN, ["a"])
    assert isinstance(lost.shortage, SlotShortage)
    assert (lost.shortage.vms, lost.shortage.slots, lost.shortage.nodes) == (1, 0, 2)
    assert lost.shortage.requests["memory"] == 10 * GIB
    assert "memory 10240 MiB" in str(lost.shortage)


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
    assert lost.shortage.requested == 14 * GIB
    assert lost.shortage.headroom == 12 * GIB
    assert "VMs that request memory: 2, together 14336 MiB;" in str(lost.shortage)


def full_of(*memory: str) -> Snapshot:
    """VMs of these sizes on n1; besides it n2 with 12 GiB and n3 with 10."""
    vms = [vm(f"v{i}", on="n1", memory=each) for i, each in enumerate(memory)]
    return cluster(node("n1", "31Gi"), node("n2", "12Gi"), node("n3", "10Gi"), vms)


def test_placing_the_largest_in_the_tightest_hole_is_not_the_last_word() -> None:
    snapshot = full_of("6Gi", "6Gi", "5Gi", "5Gi")
    assert losing("n1", snapshot).verdict is Verdict.SURVIVES
    assert losing("n1", snapshot, work_limit=0).verdict is Verdict.NOT_PROVEN


def test_what_no_sum_tells_is_found_by_trying_all_placings() -> None:
    snapshot = full_of("7Gi", "5.2Gi", "5.2Gi", "4.5Gi")
    lost = losing("n1", snapshot)
    assert (lost.verdict, lost.shortage) == (Verdict.LEAVES_DOWN, None)
    assert len(lost.left_down) == 1


def test_what_the_work_limit_leaves_open_is_not_proven() -> None:
    lost = losing("n1", full_of("7Gi", "5.2Gi", "5.2Gi", "4.5Gi"), work_limit=0)
    assert (lost.verdict, lost.shortage) == (Verdict.NOT_PROVEN, None)
    assert len(lost.left_down) == 1


def test_larger_class_finds_its_room_before_a_lower_one() -> None:
    snapshot = cluster(
        node("n1", "16Gi"),
        node("n2", "9Gi"),
        vm("low", on="n1", memory="8Gi"),
        vm("high", on="n1", memory="6Gi", priority=10),
    )
    assert left_down(losing("n1", snapshot)) == ["low"]


def test_vms_below_the_least_priority_are_not_asked_about() -> None:
    snapshot = cluster(
        node("n1", "16Gi"),
        node("n2", "9Gi"),
        vm("low", on="n1", memory="8Gi"),
        vm("high", on="n1", memory="6Gi", priority=10),
    )
    lost = losing("n1", snapshot, min_priority=10)
    assert (lost.verdict, lost.vms) == (Verdict.SURVIVES, 1)


def test_vm_that_can_run_nowhere_else_is_tied_and_no_lack_of_room() -> None:
    snapshot = cluster(
        node("n1", labels={"gpu": "yes"}),
        node("n2"),
        vm("a", on="n1", node_selector={"gpu": "yes"}),
    )
    lost = losing("n1", snapshot)
    assert (lost.verdict, lost.tied) == (Verdict.SURVIVES, (key("a"),))


def test_host_name_that_a_migration_has_left_on_the_pod_ties_it_to_nothing() -> None:
    vmi, launcher = vm("a", on="n1", labels={MIGRATION_JOB_UID: "m"})
    migrated = cluster(
        node("n1"),
        node("n2"),
        vmi,
        pod(
            launcher.name,
            on="n1",
            vmi_uid=vmi.uid,
            labels=launcher.labels,
            node_selector={**launcher.node_selector, HOSTNAME: "n1"},
            pod_anti_affinity=(off_its_launchers(vmi),),
        ),
    )
    lost = losing("n1", migrated)
    assert (lost.verdict, lost.tied, lost.vms) == (Verdict.SURVIVES, (), 1)


def test_vms_on_a_node_that_is_not_ready_need_their_room_besides() -> None:
    """R40: https://github.com/kubevirt/kubevirt/issues/6682."""
    unreachable = Taint("node.kubernetes.io/unreachable", "NoExecute")
    snapshot = cluster(
        node("n1", "16Gi"),
        node("n2", "16Gi", is_ready=False, taints=(unreachable,)),
        node("n3", "16Gi"),
        vm("a", on="n1", memory="9Gi"),
        vm("b", on="n2", memory="8Gi", is_terminating=True),
    )
    result = after_node_losses(snapshot)
    assert [loss.domain for loss in result.losses] == ["n1", "n3"]
    assert (result.already_lost.verdict, result.already_lost.vms) == (Verdict.SURVIVES, 1)
    assert [left_down(loss) for loss in result.losses] == [["b"], ["b"]]
    assert losing("n1", cluster(snapshot.nodes, vm("a", on="n1"))).verdict is Verdict.SURVIVES


def test_vms_that_are_down_already_keep_off_as_those_that_are_lost_do() -> None:
    snapshot = cluster(
        node("n1"),
        node("n2", is_ready=False),
        node("n3"),
        node("n4", "1Gi"),
        vm("a", on="n1", **apart()),
        vm("b", on="n2", **apart()),
    )
    lost = losing("n1", snapshot)
    assert lost.verdict is Verdict.LEAVES_DOWN
    assert len(lost.left_down) == 1


def test_vm_keeps_off_its_group_on_the_rest_but_not_off_where_it_was() -> None:
    nodes = [node(f"n{i}", labels={ZONE: f"z{i % 2}"}) for i in range(4)]
    first, second = vm("a", on="n0", **apart(ZONE)), vm("b", on="n1", **apart(ZONE))
    assert losing("n0", cluster(nodes, first, second)).verdict is Verdict.SURVIVES
    lost = losing_zone("z0", cluster(nodes, first, second))
    assert (lost.verdict, lost.nodes, left_down(lost)) == (Verdict.LEAVES_DOWN, 2, ["a"])


def test_node_without_a_zone_is_a_domain_of_its_own() -> None:
    state = ClusterState(cluster(node("n1", labels={ZONE: "z"}), node("n2"), node("n3")))
    assert zone_domains(state) == {"z": (0,), "n2": (1,), "n3": (2,)}


def test_vm_in_flight_is_started_once_and_even_beside_its_target_pod() -> None:
    vmi, source, target, under_way = migrating(vm("a", on="n1", memory="10Gi"), to="n2")
    target = replace(target, pod_anti_affinity=(off_its_launchers(vmi),))
    result = after_node_losses(cluster(node("n1"), node("n2"), vmi, source, target, under_way))
    assert [loss.vms for loss in result.losses] == [1, 0]
    assert [loss.verdict for loss in result.losses] == [Verdict.SURVIVES] * 2


def test_vm_with_pod_affinity_is_undecided() -> None:
    (term,) = apart()["pod_anti_affinity"]
    snapshot = cluster(node("n1"), node("n2"), vm("a", on="n1", pod_affinity=(term,)))
    lost = losing("n1", snapshot)
    assert (lost.verdict, lost.undecided) == (Verdict.NOT_PROVEN, (key("a"),))


def with_volumes(limit: int, *claimed: str) -> Snapshot:
    """A VM on n1 for each name of a claim; each node takes so many volumes."""
    names = sorted({*claimed})
    driver = "csi.example"
    snapshot = cluster(
        node("n1"),
        node("n2"),
        [PersistentVolumeClaim("default", name, f"pv-{name}") for name in names],
        [PersistentVolume(f"pv-{name}", csi=CsiVolume(driver, name)) for name in names],
        [vm(f"v{i}", on="n1", memory="1Gi", claim_names=(n,)) for i, n in enumerate(claimed)],
    )
    return replace(snapshot, csi_nodes=tuple(CSINode(n, {driver: limit}) for n in ("n1", "n2")))


def test_volumes_count_against_what_a_node_can_take() -> None:
    assert losing("n1", with_volumes(2, "a", "b")).verdict is Verdict.SURVIVES
    lost = losing("n1", with_volumes(1, "a", "b"))
    assert lost.verdict is Verdict.LEAVES_DOWN
    assert isinstance(lost.shortage, SlotShortage)
    assert lost.shortage.requests["attachable-volumes-csi-csi.example"] == 1


def test_vms_that_share_a_volume_are_undecided() -> None:
    lost = losing("n1", with_volumes(1, "shared", "shared"))
    assert lost.undecided == (key("v0"), key("v1"))


def test_vm_whose_claim_is_not_known_is_undecided_not_tied() -> None:
    lost = losing("n1", cluster(node("n1"), node("n2"), vm("a", on="n1", claim_names=("c",))))
    assert (lost.verdict, lost.undecided, lost.tied) == (Verdict.NOT_PROVEN, (key("a"),), ())


def test_vm_that_leaves_for_good_is_not_started_again() -> None:
    snapshot = cluster(
        node("n1"),
        node("n2"),
        vm("deleted", on="n1", vmi={"is_terminating": True}),
        vm("ended", on="n1", vmi={"phase": "Succeeded"}),
        vm("stopping", on="n1", is_terminating=True),
    )
    assert losing("n1", snapshot).vms == 0


@st.composite
def clusters(draw: st.DrawFn) -> Snapshot:
    """Few nodes and VMs of few sizes, in zones, with priorities, selectors and anti-affinity."""
    nodes = [
        node(
            f"n{i}",
            f"{draw(st.integers(2, 12))}Gi",
            draw(st.sampled_from(("2", "3", "16"))),
            labels={ZONE: f"z{draw(st.integers(0, 1))}", "disk": draw(st.sampled_from("ab"))},
            is_ready=draw(st.integers(0, 4)) > 0,
        )
        for i in range(draw(st.integers(2, 4)))
    ]
    vms = [
        vm(
            f"v{i}",
            on=draw(st.sampled_from(nodes)).name,
            memory=f"{draw(st.integers(1, 5))}Gi",
            cpu=draw(st.sampled_from(("1", "2"))),
            priority=draw(st.sampled_from((0, 0, 10))),
            node_selector=draw(st.sampled_from(({}, {}, {"disk": "a"}))),
            **draw(st.sampled_from(({}, {}, {}, apart(), apart(ZONE), apart(group="web")))),
        )
        for i in range(draw(st.integers(1, 6)))
    ]
    return cluster(nodes, vms)


@given(clusters(), st.sampled_from((node_domains, zone_domains)))
@settings(max_examples=300, deadline=None)
def test_a_loss_is_survived_just_if_some_placing_exists(snapshot: Snapshot, domains: Any) -> None:
    state = ClusterState(snapshot)
    named = domains(state)
    result = failover(state, named)
    dead = [each.name for each in snapshot.nodes if not each.is_ready]
    losses = [(result.already_lost, dead)]
    for loss in result.losses:
        losses.append((loss, dead + [snapshot.nodes[i].name for i in named[loss.domain]]))
    for loss, lost in losses:
        asked = {vmi.key for vmi in snapshot.vmis if vmi.node_name in lost} - {*loss.tied}
        assert loss.vms == len(asked) + len(loss.tied)
        can_start = can_all_start(asked, lost, snapshot)
        assert loss.verdict is (Verdict.SURVIVES if can_start else Verdict.LEAVES_DOWN)
        assert can_start == (not loss.left_down)
        for tied in loss.tied:
            empty = replace(snapshot, pods=(snapshot.launchers_by_vmi[f"vmi-{tied.name}"]))
            assert not can_all_start([tied], lost, empty)


@given(clusters())
@settings(max_examples=200, deadline=None)
def test_vms_of_lower_priority_change_nothing_for_higher_ones(snapshot: Snapshot) -> None:
    alone = after_node_losses(snapshot, min_priority=10).losses
    for loss, without_others in zip(after_node_losses(snapshot).losses, alone, strict=True):
        higher = tuple(left for left in loss.left_down if left.priority == 10)
        assert higher == without_others.left_down
