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
    CsiVolume,
    CSINode,
    HostPort,
    LabelSelector,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodAffinityTerm,
    Requirement,
    ResourceQuota,
)
from rebalancer.model.plan import Cost, Goal, Move, Proposal, Subject, Verdict
from rebalancer.model.snapshot import Snapshot
from rebalancer.planning.context import PlanningContext
from rebalancer.planning.movers import Movers, fit_problem
from rebalancer.planning.view import View
from rebalancer.scheduling.feasibility import evaluate
from tests.builders import NOW, cluster, migrating, node, pending_vm, pod, vm
from tests.planning.clusters import NODES, clusters

PENDING = pod("to be placed", memory="1Gi", host_ports=(HostPort(80),), labels={"group": "a"})
_ALONE = PodAffinityTerm(HOSTNAME, LabelSelector((Requirement("group", "Exists"),)), ("default",))


def view_of(snapshot: Snapshot) -> View:
    return View(snapshot, PlanningContext(), lambda _problem, known: known)


@st.composite
def crowds(draw: st.DrawFn) -> Snapshot:
    """Clusters with VMs of few kinds and some that wait besides, quotas, and limits on volumes."""
    snapshot = draw(clusters())
    labels = st.sampled_from(({}, {"group": "a"}, {"group": "b"}))
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
    volume = PersistentVolume("single", csi=CsiVolume("csi.example", "single"))
    most = draw(st.sampled_from((None, 1, 2)))
    return replace(
        snapshot,
        nodes=tuple(map(_without_fault, snapshot.nodes)),
        pods=tuple(draw(st.permutations((*snapshot.pods, *pods)))),
        vmis=(*vmis, *snapshot.vmis),
        quotas=draw(st.sampled_from(((), (), (), (quota,)))),
        claims=(*snapshot.claims, single),
        volumes=(*snapshot.volumes, volume),
        csi_nodes=tuple(CSINode(name, {"csi.example": most}) for name in NODES if most),
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
    assert arrays(view) == arrays(scratch)
    for mover, alone in zip(view.movers.movers, scratch.movers.movers, strict=True):
        assert (mover.target_pod, mover.cost) == (alone.target_pod, alone.cost)
    for each in (PENDING, *view.snapshot.pods):
        here, there = evaluate(each, view.state), evaluate(each, scratch.state)
        assert here.has_room.tolist() == there.has_room.tolist()
        for (rule, mask), (_, expected) in zip(here.masks, there.masks, strict=True):
            assert mask.tolist() == expected.tolist(), rule.name


@given(crowds(), st.data())
def test_one_goal_after_another_sees_what_a_new_view_of_its_cluster_would(
    snapshot: Snapshot, data: st.DataObject
) -> None:
    view = view_of(snapshot)
    for _ in range(3):
        view = view.after(a_proposal(data.draw, view))
        assert_is_as_from_scratch(view)
