"""Small clusters in which VMs differ in all that makes some stay and others go elsewhere."""

from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from rebalancer.model.keys import CREATED_BY, HOSTNAME, OPT_OUT, PREFER_NO_EVICTION, ZONE
from rebalancer.model.objects import (
    EMPTY,
    CSINode,
    CsiVolume,
    HostPort,
    LabelSelector,
    LauncherSpec,
    MigrationPolicy,
    NodeSelectorTerm,
    PersistentVolume,
    PersistentVolumeClaim,
    PodAffinityTerm,
    Requirement,
    Taint,
    TopologySpreadConstraint,
)
from rebalancer.model.snapshot import Snapshot
from rebalancer.planning.outlook import lock_pod
from tests.builders import CPU_MODEL, NOW, Thing, cluster, migration, node, pod, vm

DRIVER = "csi.example"
NODES = ("n0", "n1", "n2", "n3")


def _often(usual: Any, *others: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from((usual,) * 3 + others)


def _apart(topology_key: str, label: str, value: str) -> PodAffinityTerm:
    selector = LabelSelector((Requirement(label, "In", (value,)),))
    return PodAffinityTerm(topology_key, selector, ("default",))


_GROUP_TERMS = (_apart(HOSTNAME, "group", "a"), _apart(ZONE, "group", "b"))
_SPREAD = TopologySpreadConstraint(ZONE, 1, LabelSelector((Requirement("group", "Exists"),)))
_LAUNCHERS = (
    LauncherSpec(requests={"memory": 2**30}, guest_memory_bytes=2**30, vcpus=2),
    LauncherSpec(requests={"memory": 2**31}, hotplugged_claims=("shared",)),
    LauncherSpec(rejected_labels=("obsolete",), pod_anti_affinity=_GROUP_TERMS[:1]),
)


@st.composite
def clusters(draw: st.DrawFn) -> Snapshot:
    things: list[Thing] = [draw(_node(name)) for name in NODES]
    for i in range(draw(st.integers(1, 7))):
        things += draw(_vm(f"vm-{i}"))
    things += [
        pod("other", on=draw(st.sampled_from(NODES)), labels={"group": "a"}),
        *draw(st.sampled_from(((), (lock_pod("lock", "n1", ("vmi-vm-0",)),)))),
        *draw(_often((), (MigrationPolicy("slow", True, {"group": "a"}, EMPTY, 2**20),))),
        *claimed("shared", "in-z1"),
    ]
    most = [draw(_often(2, 0, 1, None)) for _ in NODES]
    limits = tuple(
        CSINode(name, {DRIVER: count})
        for name, count in zip(NODES, most, strict=True)
        if count is not None
    )
    return replace(cluster(*draw(st.permutations(things))), csi_nodes=draw(_often((), limits)))


def claimed(name: str, volume: str) -> tuple[PersistentVolumeClaim, PersistentVolume]:
    """A claim and its volume, which can only be reached in z1 if its name says so."""
    in_z1 = (NodeSelectorTerm((Requirement(ZONE, "In", ("z1",)),)),)
    reached = in_z1 if volume == "in-z1" else None
    return (
        PersistentVolumeClaim("default", name, volume_name=volume),
        PersistentVolume(volume, reached, csi=CsiVolume(DRIVER, volume)),
    )


@st.composite
def _node(draw: st.DrawFn, name: str) -> Thing:
    model = draw(_often(CPU_MODEL, "EPYC"))
    return node(
        name,
        labels={
            ZONE: draw(st.sampled_from(("z1", "z2"))),
            "kubevirt.io/schedulable": draw(_often("true", "false")),
            f"host-model-cpu.node.kubevirt.io/{model}": "true",
            f"cpu-model-migration.node.kubevirt.io/{model}": "true",
        },
        is_ready=draw(_often(True, False)),
        is_unschedulable=draw(_often(False, True)),
        taints=draw(_often((), (Taint("a", "NoSchedule"),), (Taint("b", "PreferNoSchedule"),))),
    )


@st.composite
def _vm(draw: st.DrawFn, name: str) -> list[Thing]:
    """A VM, and what is left of its migrations."""
    on = draw(st.sampled_from(NODES))
    was_migrated = draw(st.booleans())
    own = (_apart(HOSTNAME, CREATED_BY, f"vmi-{name}"),) if was_migrated else ()
    vmi, launcher = vm(
        name,
        on=on,
        memory=draw(st.sampled_from(("1Gi", "2Gi"))),
        labels=draw(st.sampled_from((EMPTY, {"group": "a"}, {"group": "b"}))),
        node_selector=draw(_often(EMPTY, {ZONE: "z2"})),
        vmi={
            "launcher": draw(st.sampled_from((None, *_LAUNCHERS))),
            "annotations": draw(_often(EMPTY, {OPT_OUT: "true"}, {PREFER_NO_EVICTION: "true"})),
            "has_host_model_cpu": draw(st.booleans()),
        },
        pod_anti_affinity=(*draw(st.sampled_from(((), *zip(_GROUP_TERMS)))), *own),
        pod_affinity=draw(_often((), (_apart(ZONE, "group", "a"),))),
        topology_spread=draw(_often((), (_SPREAD,))),
        host_ports=draw(_often((), (HostPort(80),))),
        claim_names=draw(_often((), ("shared",), (f"own-{name}",))),
        priority=draw(_often(0, 1000)),
    )
    vmi = replace(vmi, labels=launcher.labels)
    phase = draw(_often("", "Running", "Succeeded", "Failed"))
    things: list[Thing] = [vmi, launcher, *claimed(f"own-{name}", name)]
    if not phase:
        return things
    ended_at = NOW - timedelta(hours=draw(st.integers(0, 30)))
    return [*things, migration(f"m-{name}", name, phase, created_at=ended_at)]
