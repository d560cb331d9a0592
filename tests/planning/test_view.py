"""What a view carries over from the one before is what it would work out by itself."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rebalancer.model.keys import HOSTNAME
from rebalancer.model.objects import (
    CSINode,
    CsiVolume,
    HostPort,
    LabelSelector,
    LauncherSpec,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    PodAffinityTerm,
    Requirement,
    ResourceQuota,
)
from rebalancer.model.plan import Cost, Goal, Move, Proposal, Subject, Verdict
from rebalancer.model.snapshot import Snapshot
from rebalancer.planning.movers import Movers, fit_problem
from rebalancer.planning.view import View
from rebalancer.scheduling.feasibility import evaluate
from tests.builders import cluster, node, pending_vm, pod, vm
from tests.drain.views import view_of
from tests.planning.clusters import DRIVER, NODES, claimed, clusters

LABELS = {"group": "a"}
PENDING = pod("to be placed", memory="1Gi", host_ports=(HostPort(80),), labels=LABELS)
_ALONE = PodAffinityTerm(HOSTNAME, LabelSelector((Requirement("group", "Exists"),)), ("default",))
KEEPS_OFF: dict[str, Any] = {"pod_anti_affinity": (_ALONE,)}


@st.composite
def crowds(draw: st.DrawFn) -> Snapshot:
    """Clusters with VMs of few kinds and some that wait besides, quotas, and limits on volumes."""
    snapshot = draw(clusters())
    labels = st.sampled_from(({}, LABELS, {"group": "b"}))
    waiting = [
        pending_vm(
            f"waiting-{i}",
            "1Gi",
            labels=draw(labels),
            pod_anti_affinity=draw(st.sampled_from(((_ALONE,), ()))),
            host_ports=draw(st.sampled_from(((), (HostPort(80),)))),
            claim_names=draw(st.sampled_from(((), (), ("shared",), ("single",)))),
            nominated_node_name=draw(st.sampled_from((None, None, None, "n2"))),
        )
        for i in range(2)
    ]
    alike = [
        vm(f"alike-{i}", on=draw(st.sampled_from(NODES)), memory="1Gi", labels=draw(labels))
        for i in range(4)
    ]
    vmis, pods = zip(*waiting, *alike, strict=True)
    quota = ResourceQuota("default", "all", {"limits.cpu": 20}, {"limits.cpu": 20})
    single = PersistentVolumeClaim(
        "default", "single", volume_name="single", is_read_write_once_pod=True
    )
    volume = PersistentVolume("single", csi=CsiVolume(DRIVER, "single"))
    most = draw(st.sampled_from((None, 1, 2)))
    return replace(
        snapshot,
        nodes=tuple(map(_without_fault, snapshot.nodes)),
        pods=tuple(draw(st.permutations((*snapshot.pods, *pods)))),
        vmis=(*vmis, *snapshot.vmis),
        quotas=draw(st.sampled_from(((), (), (), (quota,)))),
        claims=(*snapshot.claims, single),
        volumes=(*snapshot.volumes, volume),
        csi_nodes=tuple(CSINode(name, {DRIVER: most}) for name in NODES if most),
    )


def _without_fault(node: Node) -> Node:
    return replace(node, is_ready=True, labels={**node.labels, "kubevirt.io/schedulable": "true"})


def a_proposal(draw: Callable[[st.SearchStrategy[Any]], Any], view: View) -> Proposal:
    """Any moves of VMs that may be moved, be there room for them or not."""
    movers = view.movers.movers
    chosen = (
        draw(st.lists(st.sampled_from(range(len(movers))), max_size=2, unique=True))
        if movers
        else []
    )
    moves = []
    for index in chosen:
        mover = movers[index]
        source, key = view.state.nodes[mover.source].name, mover.vmi.key
        moves.append(
            Move(
                id=f"{key.name}-{len(view.snapshot.migrations)}",
                vmi=key,
                vmi_uid=mover.vmi.uid,
                source=source,
                target=draw(st.sampled_from([name for name in NODES if name != source])),
                bytes=1,
                seconds=1.0,
                cost=Cost({}),
                after=draw(st.sampled_from(((), ("another",)))),
            )
        )
    waiting = [p for p in view.snapshot.pods if p.vmi_uid and not p.node_name]
    subject = f"goal-{len(view.snapshot.migrations)}"
    goal = Goal("Test", Subject("Node", "", subject, subject), Verdict.PLANNED)
    if waiting and draw(st.booleans()):
        uid = draw(st.sampled_from(waiting)).vmi_uid
        goal = replace(
            goal,
            subject=Subject("VirtualMachineInstance", "default", uid, uid),
            node=draw(st.sampled_from(NODES)),
        )
    return Proposal(goal, tuple(moves))


def indexes(snapshot: Snapshot) -> dict[str, Any]:
    names = [name for name, of in vars(Snapshot).items() if isinstance(of, cached_property)]
    return {name: getattr(snapshot, name) for name in names}


def arrays(view: View) -> dict[str, list[Any]]:
    context = view.context
    found = {}
    for ignores in (False, True):
        pending = evaluate(PENDING, view.state)
        problem = fit_problem(pending, view.movers, context, ignores_placement=ignores)
        fields = {name: getattr(problem, name) for name in problem.__struct_fields__}
        found.update(
            {f"{name} {ignores}": np.asarray(each).tolist() for name, each in fields.items()}
        )
    return found


def classes(movers: Movers) -> list[Any]:
    return [
        (
            each.number,
            each.allowed.tolist(),
            each.allowed_wherever_pods_are.tolist(),
            {name: seconds.tolist() for name, seconds in each.charges.items()},
        )
        for each in movers.classes
    ]


def assert_is_as_from_scratch(view: View) -> None:
    scratch = view_of(replace(view.snapshot))
    assert indexes(view.snapshot) == indexes(scratch.snapshot)
    for resource in ("cpu", "memory", "pods"):
        assert (view.state.headroom(resource) == scratch.state.headroom(resource)).all()
    assert view.movers.vmis == scratch.movers.vmis
    assert view.movers.refused == scratch.movers.refused
    assert classes(view.movers) == classes(scratch.movers)
    expected = arrays(scratch)
    for name, found in arrays(view).items():
        assert found == expected[name], name
    for mover, alone in zip(view.movers.movers, scratch.movers.movers, strict=True):
        assert (mover.target_pod, mover.cost) == (alone.target_pod, alone.cost)
    for each in (PENDING, *view.snapshot.pods):
        here, there = evaluate(each, view.state), evaluate(each, scratch.state)
        assert here.has_room.tolist() == there.has_room.tolist()
        for (rule, mask), (_, alike) in zip(here.masks, there.masks, strict=True):
            assert mask.tolist() == alike.tolist(), rule.name


@given(crowds(), st.data())
def test_one_goal_after_another_sees_what_a_new_view_of_its_cluster_would(
    snapshot: Snapshot, data: st.DataObject
) -> None:
    view = view_of(snapshot)
    for _ in range(3):
        view = view.after(a_proposal(data.draw, view))
        assert_is_as_from_scratch(view)


def test_a_pod_that_keeps_off_some_vms_of_a_class_makes_two_of_it() -> None:
    alike = [vm(name, on="n1", labels=labels) for name, labels in (("a", {}), ("b", LABELS))]
    view = view_of(cluster(*map(node, NODES), *alike, pending_vm("p", "1Gi", **KEEPS_OFF)))
    assert [mover.rules.number for mover in view.movers.movers] == [0, 0]
    after = view.after(placed("p", "n2"))
    assert [after.state.nodes[i].name for i in np.flatnonzero(~after.movers.allowed[1])] == ["n2"]
    assert_is_as_from_scratch(after)


def test_a_host_port_that_is_taken_bars_those_that_want_it() -> None:
    ports = (HostPort(80),)
    waiting = pending_vm("p", "1Gi", host_ports=ports)
    view = view_of(cluster(*map(node, NODES), vm("a", on="n1", host_ports=ports), waiting))
    assert view.movers.allowed.sum() == 3
    after = view.after(placed("p", "n2"))
    assert after.movers.allowed.sum() == 2
    assert_is_as_from_scratch(after)


def test_a_claim_for_one_pod_alone_that_is_taken_bars_those_that_would_bring_it() -> None:
    claim = PersistentVolumeClaim("default", "c", volume_name="v", is_read_write_once_pod=True)
    hotplugs = vm("a", on="n1", vmi={"launcher": LauncherSpec(hotplugged_claims=("c",))})
    waiting = pending_vm("p", "1Gi", claim_names=("c",))
    volume = PersistentVolume("v")
    view = view_of(cluster(*map(node, NODES), hotplugs, waiting, claim, volume))
    assert view.movers.allowed.any()
    after = view.after(placed("p", "n2"))
    assert not after.movers.allowed.any()
    assert_is_as_from_scratch(after)


def test_a_node_that_is_full_of_volumes_by_then_is_none_for_those_that_would_bring_more() -> None:
    vms = [vm(name, on=on, claim_names=(name,)) for name, on in (("a", "n1"), ("b", "n2"))]
    claims = [each for name in "abp" for each in claimed(name, name)]
    waiting = pending_vm("p", "1Gi", claim_names=("p",))
    snapshot = cluster(*map(node, NODES), *vms, waiting, *claims)
    view = view_of(replace(snapshot, csi_nodes=tuple(CSINode(name, {DRIVER: 2}) for name in NODES)))
    assert len(view.movers.classes) == 1
    after = view.after(placed("p", "n1"))
    at_n1 = after.state.index["n1"]
    assert after.movers.allowed[after.movers.mover_class, at_n1].tolist() == [True, False]
    assert_is_as_from_scratch(after)


def test_a_pod_bound_elsewhere_than_it_was_expected_gives_that_room_back() -> None:
    view = view_of(cluster(*map(node, NODES), pending_vm("p", "1Gi", nominated_node_name="n1")))
    assert not view.movers.movers
    assert_is_as_from_scratch(view.after(placed("p", "n2")))


def test_a_pod_does_not_come_upon_the_room_that_it_holds_itself() -> None:
    waiting = pending_vm("p", "30Gi", nominated_node_name="n1")
    view = view_of(cluster(node("n1"), waiting, pending_vm("q", "30Gi")))
    pods = view.snapshot.pods
    assert [evaluate(p, view.without(p).state).has_room.tolist() for p in pods] == [[True], [False]]
    assert view.without(pods[1]) is view


def placed(name: str, on: str) -> Proposal:
    subject = Subject("VirtualMachineInstance", "default", name, f"vmi-{name}")
    return Proposal(Goal("Test", subject, Verdict.FITS, node=on))
