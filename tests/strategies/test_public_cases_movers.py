"""Public reports about the VMs in the way: which may be moved, what their second pod asks for.

A case is named after its place in our list and the report that it comes from.
"""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from rebalancer.model.keys import CREATED_BY, EVICTION_IN_PROGRESS, HOSTNAME, PREFER_NO_EVICTION
from rebalancer.model.objects import (
    LabelSelector,
    LauncherConfiguration,
    LauncherSpec,
    MigrationState,
    Node,
    PodAffinityTerm,
    PodDisruptionBudget,
    Requirement,
    ResourceQuota,
    Taint,
    Toleration,
)
from rebalancer.model.plan import Verdict
from rebalancer.model.snapshot import Snapshot
from tests.builders import (
    NOW,
    Launched,
    Thing,
    amounts,
    cluster,
    migration,
    node,
    pending_vm,
    pod,
    vm,
)
from tests.strategies.decisions import Case, assert_decided

PLANNED = {"p": Verdict.PLANNED}
IMPOSSIBLE = {"p": Verdict.IMPOSSIBLE}
WAITING = {"p": Verdict.WAITING}
GIB = 2**30


def in_the_way(*things: Thing) -> Snapshot:
    """p needs 8Gi of n1, where 4Gi are free beside 12Gi of VMs; n2 has 6Gi free."""
    return cluster(
        node("n1", memory="16Gi", labels={"landing": "true"}),
        node("n2", memory="6Gi"),
        *things,
        pending_vm("p", "8Gi", node_selector={"landing": "true"}),
    )


def q(**fields: Any) -> Launched:
    return vm("q", on="n1", memory="6Gi", **fields)


def other(**fields: Any) -> Launched:
    """Equal to q but for what the case is about, and before it in every order."""
    return vm("o", on="n1", memory="6Gi", **fields)


def beside_q(**fields: Any) -> Snapshot:
    return in_the_way(other(**fields), q())


def alone(**fields: Any) -> Snapshot:
    """The only VM that could make room, since the rest of the node is taken by a pod."""
    return in_the_way(other(**fields), pod("fixed", on="n1", memory="6Gi"))


# R05


def overhead(*targets: Node, mover: str = "2401517569") -> Snapshot:
    """q's pod asks for its 2Gi guest and 242.3Mi besides."""
    return cluster(
        node("n1", memory="8Gi", labels={"landing": "true"}),
        *targets,
        vm("q", on="n1", memory=mover, vmi={"guest_memory_bytes": 2 * GIB}),
        pending_vm("p", "7Gi", node_selector={"landing": "true"}),
    )


# R07

HOST_LEFT_BEHIND = {
    "kubernetes.io/arch": "arm64",
    HOSTNAME: "n1",
    "kubevirt.io/schedulable": "true",
    "machine-type.node.kubevirt.io/virt-9.2": "true",
}
ARM = {"kubernetes.io/arch": "arm64", "machine-type.node.kubevirt.io/virt-9.2": "true"}


def host_left_behind(*, on_vmi: str = "", target: dict[str, str] = ARM) -> Snapshot:
    vmi, launcher = q(
        vmi={"architecture": "arm64"}, node_selector={HOSTNAME: on_vmi} if on_vmi else {}
    )
    return cluster(
        node("n1", memory="10Gi", labels={**ARM, "landing": "true"}),
        node("n2", memory="6Gi", labels=target),
        (vmi, replace(launcher, node_selector=HOST_LEFT_BEHIND)),
        pending_vm(
            "p",
            "8Gi",
            vmi={"architecture": "arm64"},
            node_selector={"kubernetes.io/arch": "arm64", "landing": "true"},
        ),
    )


# R10


def preemption(**pending: Any) -> Snapshot:
    return cluster(
        node("n1", memory="16Gi"),
        node("n2", memory="6Gi"),
        vm("a", on="n1", memory="6Gi"),
        vm("b", on="n1", memory="6Gi", priority=1000),
        pending_vm("p", "8Gi", priority=1000, **pending),
    )


def preemption_under_way() -> Snapshot:
    snapshot = preemption(nominated_node_name="n1")
    return replace(
        snapshot, pods=tuple(replace(p, is_terminating=p.uid == "pod-a") for p in snapshot.pods)
    )


# R13

REQUIRED = "host-model-required-features.node.kubevirt.io/"
FEATURE = "cpu-feature.node.kubevirt.io/"
MIGRATES_TO = "cpu-model-migration.node.kubevirt.io/"
HOST_MODEL = "host-model-cpu.node.kubevirt.io/"


def cpu_node(name: str, memory: str, model: str, *features: str, runs: tuple[str, ...]) -> Node:
    """A node of that host model, and the models of other nodes whose VMs it can take."""
    bare = node(name, memory=memory)
    labels = {
        k: v for k, v in bare.labels.items() if "cpu-model" not in k and "host-model" not in k
    }
    labels |= {HOST_MODEL + model: "true"}
    labels |= {MIGRATES_TO + each: "true" for each in runs}
    for feature in features:
        labels |= {REQUIRED + feature: "true", FEATURE + feature: "true"}
    return replace(bare, labels=labels)


def cpu_models(mover: Launched, landing: str) -> Snapshot:
    """Skylake requires {a}, Icelake {a, b} and takes Skylake's VMs; n3 takes nobody's."""
    sizes = dict.fromkeys(("n1", "n2", "n3"), "6Gi") | {landing: "10Gi"}
    return cluster(
        cpu_node("n1", sizes["n1"], "Skylake", "a", runs=("Skylake",)),
        cpu_node("n2", sizes["n2"], "Icelake", "a", "b", runs=("Skylake", "Icelake")),
        cpu_node("n3", sizes["n3"], "Opteron", runs=("Opteron",)),
        mover,
        pending_vm("p", "8Gi", node_selector={HOSTNAME: landing}),
    )


def without_host_model() -> Snapshot:
    snapshot = cpu_models(vm("u", on="n1", memory="6Gi"), "n1")
    source, *others = snapshot.nodes
    labels = {k: v for k, v in source.labels.items() if not k.startswith(HOST_MODEL)}
    return replace(snapshot, nodes=(replace(source, labels=labels), *others))


def moved_from_n1() -> Launched:
    vmi, launcher = vm("v", on="n2", memory="6Gi")
    selector = {MIGRATES_TO + "Skylake": "true", FEATURE + "a": "true"}
    return vmi, replace(launcher, node_selector=selector)


# R14


def two_launchers(phase: str) -> Snapshot:
    """v's second pod is on n2; only once that has ended is there room for v."""
    return cluster(
        node("n1", memory="10Gi", labels={"landing": "true"}),
        node("n2", memory="12Gi"),
        vm("v", on="n1", memory="8Gi"),
        pod("stale", on="n2", memory="8Gi", phase=phase, vmi_uid="vmi-v"),
        pending_vm("p", "8Gi", node_selector={"landing": "true"}),
    )


# R17


def near(name: str, *, of: str) -> dict[str, Any]:
    """The labels of one VM, and a requirement to run where the other does."""
    selector = LabelSelector((Requirement("vm", "In", (of,)),))
    term = PodAffinityTerm(HOSTNAME, selector, namespaces=("default",))
    return {"labels": {"vm": name}, "pod_affinity": (term,)}


def tied_to_each_other(*, other_node: str = "12Gi") -> Snapshot:
    """p needs all of n1, and neither a nor b may be without the other."""
    return cluster(
        node("n1", memory="12Gi", labels={"landing": "true"}),
        node("n2", memory=other_node),
        vm("a", on="n1", memory="6Gi", **near("a", of="b")),
        vm("b", on="n1", memory="6Gi", **near("b", of="a")),
        pending_vm("p", "12Gi", node_selector={"landing": "true"}),
    )


# R18

VM_LIMIT = 17405661185


def quota(name: str = "q", **keys: tuple[int, int]) -> ResourceQuota:
    """Of each key what is allowed and what is used; `limits_memory` is limits.memory."""
    named = {key.replace("_", "."): pair for key, pair in keys.items()}
    return ResourceQuota(
        "tight",
        name,
        hard={key: hard for key, (hard, _) in named.items()},
        used={key: used for key, (_, used) in named.items()},
    )


def under_quota(*quotas: ResourceQuota, with_free_vm: bool = True) -> Snapshot:
    """o is in a namespace with quotas; q, its equal, is not."""
    limited: dict[str, Any] = {"limits": {"memory": VM_LIMIT}}
    memory = str(VM_LIMIT)
    equal: Thing = vm("q", on="n1", memory=memory, **limited)
    return cluster(
        node("n1", memory="48Gi", labels={"landing": "true"}),
        node("n2", memory="17Gi"),
        *quotas,
        vm("o", on="n1", memory=memory, namespace="tight", **limited),
        equal if with_free_vm else pod("fixed", on="n1", memory=memory),
        pending_vm("p", "31Gi", node_selector={"landing": "true"}),
    )


FULL_OF_MEMORY = quota(limits_memory=(64 * GIB, 52216983555))


# R19

SILENT = {"kubevirt.io/schedulable": "false"}


def silent_target() -> Snapshot:
    return cluster(
        node("n1", memory="10Gi", labels={"landing": "true"}),
        node("n2", memory="20Gi", labels=SILENT),
        node("n3", memory="6Gi"),
        q(),
        pending_vm("p", "8Gi", node_selector={"landing": "true"}),
    )


def silent_source() -> Snapshot:
    """p's pod was made for n1, where KubeVirt has gone silent since."""
    vmi, launcher = pending_vm("p", "8Gi")
    return cluster(
        node("n1", memory="10Gi", labels=SILENT),
        node("n2", memory="6Gi"),
        q(),
        (vmi, replace(launcher, node_selector={})),
    )


# R23


def hotplugged(*, slots: int) -> Snapshot:
    """q's second pod brings a second attachment pod: two slots, and the memory of both."""
    return cluster(
        node("n1", memory="10Gi", labels={"landing": "true"}),
        node("n2", memory="20Gi", pods=str(slots)),
        q(),
        pod("hp-volume", on="n1", memory="100Mi", attached_to="pod-q"),
        pending_vm("p", "8Gi", node_selector={"landing": "true"}),
    )


def hotplugged_memory(free: str) -> Snapshot:
    snapshot = hotplugged(slots=110)
    nodes = (snapshot.nodes[0], node("n2", memory=free))
    return replace(snapshot, nodes=nodes)


# R24


def plugged_in(**vmi: Any) -> Snapshot:
    """v's guest is to have 2Gi, and its pod was made when it had 1Gi."""
    launcher = LauncherSpec(guest_memory_bytes=2 * GIB, vcpus=1, logs_serial_console=False)
    memory = "1.25Gi"
    containers = {"compute": amounts({"memory": memory, "cpu": "100m"})}
    return cluster(
        node("n1", memory="2Gi", labels={"landing": "true"}),
        node("n2", memory="1.6Gi"),
        node("n3", memory="2.5Gi"),
        vm(
            "v",
            on="n1",
            memory=memory,
            launcher_containers=containers,
            vmi={"launcher": launcher, "guest_memory_bytes": GIB, **vmi},
        ),
        pending_vm("p", "1.5Gi", node_selector={"landing": "true"}),
    )


# R27

CORDON = "node.kubernetes.io/unschedulable"


def cordoned(*, pending: str, tolerated: bool = False) -> Snapshot:
    """n1 is cordoned, and q on it could go to n2, which is where p fits if it is small."""
    tolerations = (Toleration(CORDON, "Exists"),) if tolerated else ()
    return cluster(
        node("n1", memory="10Gi", is_unschedulable=True, taints=(Taint(CORDON, "NoSchedule"),)),
        node("n2", memory="6Gi"),
        q(),
        pending_vm("p", pending, tolerations=tolerations),
    )


# R28


def evacuating_with_migrations() -> Snapshot:
    failed = (
        migration(f"kubevirt-evacuation-{i}", "o", "Failed", created_at=NOW - timedelta(hours=i))
        for i in range(1, 4)
    )
    pending = migration("kubevirt-evacuation-0", "o", "Pending")
    return in_the_way(other(vmi={"evacuation_node_name": "n1"}), q(), *failed, pending)


# R31


def under_one_budget() -> Snapshot:
    """Two VMs of a pool must leave; nobody may evict them, which a migration does not."""
    pool = {"pool": "a"}
    selector = LabelSelector((Requirement("pool", "In", ("a",)),))
    return cluster(
        node("n1", memory="12Gi", labels={"landing": "true"}),
        node("n2", memory="12Gi"),
        PodDisruptionBudget("default", "pool", selector),
        vm("o", on="n1", memory="6Gi", labels=pool),
        vm("q", on="n1", memory="6Gi", labels=pool),
        pending_vm("p", "12Gi", node_selector={"landing": "true"}),
    )


def budget_of_kubevirt() -> Snapshot:
    selector = LabelSelector((Requirement(CREATED_BY, "In", ("vmi-o",)),))
    budget = PodDisruptionBudget("default", "kubevirt-disruption-budget-x", selector, True)
    return in_the_way(budget, other(), pod("fixed", on="n1", memory="6Gi"))


# R40

UNREACHABLE = Taint("node.kubernetes.io/unreachable", "NoExecute")


def dead_node(*, pods_leave: bool) -> Snapshot:
    """n2 has what p needs, were it not dead."""
    return cluster(
        node("n1", memory="16Gi"),
        node("n2", memory="32Gi", is_ready=False, taints=(UNREACHABLE,)),
        node("n3", memory="6Gi"),
        q(),
        vm("o", on="n1", memory="6Gi", node_selector={HOSTNAME: "n1"}),
        vm("dead-1", on="n2", memory="6Gi", is_terminating=pods_leave),
        vm("dead-2", on="n2", memory="6Gi", is_terminating=pods_leave),
        pending_vm("p", "8Gi"),
    )


def on_a_dead_node() -> Snapshot:
    """Were it not dead, the VM on it could go to n3."""
    return cluster(
        node("n2", memory="10Gi", is_ready=False, taints=(UNREACHABLE,)),
        node("n3", memory="6Gi"),
        vm("dead", on="n2", memory="6Gi"),
        pending_vm("p", "8Gi"),
    )


CASES = {
    "R05 kubevirt/kubevirt#5730 the pod is bigger than the guest": Case(
        lambda: overhead(node("n2", memory="2248Mi"), node("n3", memory="2291Mi")),
        PLANNED,
        "q->n3",
    ),
    "R05 harvester/harvester#6438 a larger overhead ratio": Case(
        lambda: overhead(node("n2", memory="2291Mi"), mover="2408Mi"),
        IMPOSSIBLE,
        says=("q: no other node takes it",),
    ),
    "R07 harvester/harvester#10383 a host name left on the pod": Case(
        host_left_behind, PLANNED, "q->n2"
    ),
    "R07 harvester/harvester#8212 the host name is the VMI's": Case(
        lambda: host_left_behind(on_vmi="n1"), IMPOSSIBLE, says=("n2: NodeAffinity",)
    ),
    "R07 harvester/harvester#3397 the other node lacks the machine type": Case(
        lambda: host_left_behind(target={"kubernetes.io/arch": "arm64"}),
        IMPOSSIBLE,
        says=("n2: NodeAffinity",),
    ),
    "R10 kubevirt/enhancements#56 room without preemption": Case(
        lambda: preemption(can_preempt=False), PLANNED, "a->n2"
    ),
    "R10 a pod that may preempt but has not": Case(preemption, PLANNED, "a->n2"),
    "R10 preemption under way": Case(preemption_under_way, WAITING, says=("preempting",)),
    "R13 kubevirt/kubevirt#7672 the first move asks for the source's host model": Case(
        lambda: cpu_models(vm("u", on="n1", memory="6Gi"), "n1"), PLANNED, "u->n2"
    ),
    "R13 kubevirt/kubevirt#7780 a later move for that of its first node": Case(
        lambda: cpu_models(moved_from_n1(), "n2"), PLANNED, "v->n1"
    ),
    "R13 harvester/harvester#3015 no other node takes its model": Case(
        lambda: cpu_models(vm("w", on="n2", memory="6Gi"), "n2"),
        IMPOSSIBLE,
        says=("n1, n3: NodeAffinity",),
    ),
    "R13 kubevirt/kubevirt#5623 the source has no host model": Case(
        without_host_model, IMPOSSIBLE, says=("no host-model-cpu.node.kubevirt.io label",)
    ),
    "R14 kubevirt/kubevirt#12773 two launcher pods": Case(
        lambda: two_launchers("Running"), IMPOSSIBLE, says=("2 live launcher pods",)
    ),
    "R14 kubevirt/kubevirt#18320 the second has ended": Case(
        lambda: two_launchers("Succeeded"), PLANNED, "v->n2"
    ),
    "R14 kubevirt/kubevirt#18287 the second has failed": Case(
        lambda: two_launchers("Failed"), PLANNED, "v->n2"
    ),
    "R15 kubevirt/kubevirt#2495 a migration that is no more": Case(
        lambda: alone(vmi={"migration_state": MigrationState("gone")}),
        IMPOSSIBLE,
        says=("o: its status tells of migration gone",),
    ),
    "R15 kubevirt/kubevirt#2228 another VM goes": Case(
        lambda: beside_q(vmi={"migration_state": MigrationState("gone")}), PLANNED, "q->n2"
    ),
    "R15 kubevirt/kubevirt#2652 one that has failed is none": Case(
        lambda: alone(vmi={"migration_state": MigrationState("gone", is_failed=True)}),
        PLANNED,
        "o->n2",
    ),
    "R16 kubevirt/kubevirt#16353 one node takes pods, the other is cordoned": Case(
        lambda: cluster(
            node("n1", memory="10Gi"),
            node("n2", is_unschedulable=True),
            q(),
            pending_vm("p", "8Gi"),
        ),
        IMPOSSIBLE,
        says=("n2: NodeUnschedulable",),
    ),
    "R17 kubevirt/kubevirt#18165 tied to another VM": Case(
        lambda: in_the_way(
            vm("a", on="n1", memory="6Gi", labels={"vm": "a"}, node_selector={HOSTNAME: "n1"}),
            vm("b", on="n1", memory="6Gi", **near("b", of="a")),
        ),
        {"p": Verdict.UNPROVEN},
        says=("b: no other node takes it now (n2: InterPodAffinity",),
    ),
    "R17 the one that nothing ties goes": Case(
        lambda: in_the_way(
            vm("a", on="n1", memory="6Gi", labels={"vm": "a"}),
            vm("b", on="n1", memory="6Gi", **near("b", of="a")),
        ),
        PLANNED,
        "a->n2",
    ),
    "R17 two that are tied to each other stay": Case(
        tied_to_each_other,
        {"p": Verdict.UNPROVEN},
        says=("a: no other node takes it now", "b: no other node takes it now"),
    ),
    "R17 no affinity makes up for room": Case(
        lambda: tied_to_each_other(other_node="5Gi"), IMPOSSIBLE, says=("memory: needs 6",)
    ),
    "R18 harvester/harvester#3124 a quota that the second pod would exceed": Case(
        lambda: under_quota(FULL_OF_MEMORY), PLANNED, "q->n2"
    ),
    "R18 kubevirt/kubevirt#9238 nobody else could go": Case(
        lambda: under_quota(FULL_OF_MEMORY, with_free_vm=False),
        IMPOSSIBLE,
        says=("limits.memory: a second launcher pod takes 16599.3 MiB, 15738 MiB of 65536 MiB",),
    ),
    "R18 kubevirt/kubevirt#9738 the number of pods": Case(
        lambda: under_quota(quota(pods=(1, 1)), with_free_vm=False),
        IMPOSSIBLE,
        says=("pods: a second launcher pod takes 1, 0 of 1 is left",),
    ),
    "R18 harvester/harvester#7504 room in the quota": Case(
        lambda: under_quota(quota(limits_memory=(64 * GIB, VM_LIMIT)), with_free_vm=False),
        PLANNED,
        "o->n2",
    ),
    "R19 kubevirt/kubevirt#6825 a ready node that KubeVirt does not run on": Case(
        silent_target, PLANNED, "q->n3"
    ),
    "R19 kubevirt/kubevirt#8583 nor can anything leave it": Case(
        silent_source, IMPOSSIBLE, says=("q: node n1 is not labelled kubevirt.io/schedulable=true",)
    ),
    "R23 kubevirt/kubevirt#13523 an attachment pod follows": Case(
        lambda: hotplugged(slots=2), PLANNED, "q->n2"
    ),
    "R23 and needs a slot of its own": Case(
        lambda: hotplugged(slots=1), IMPOSSIBLE, says=("pods: needs 2",)
    ),
    "R23 kubevirt/kubevirt#5728 and its memory": Case(
        lambda: hotplugged_memory("6Gi"), IMPOSSIBLE, says=("memory: needs 6547308544",)
    ),
    "R24 kubevirt/kubevirt#14095 the second pod is larger": Case(plugged_in, PLANNED, "v->n3"),
    "R24 kubevirt/kubevirt#12101 KubeVirt is about to move it": Case(
        lambda: plugged_in(pending_changes=("HotMemoryChange",)),
        IMPOSSIBLE,
        says=("v: condition HotMemoryChange",),
    ),
    "R24 kubevirt/kubevirt#14622 volumes that change": Case(
        lambda: beside_q(vmi={"pending_changes": ("VolumesChange",)}), PLANNED, "q->n2"
    ),
    "R27 kubevirt/hyperconverged-cluster-operator#823 a cordon moves nothing": Case(
        lambda: cordoned(pending="6Gi"), {"p": Verdict.FITS}
    ),
    "R27 what is cordoned is no target": Case(
        lambda: cordoned(pending="8Gi"), IMPOSSIBLE, says=("node is cordoned",)
    ),
    "R27 but may be left": Case(lambda: cordoned(pending="8Gi", tolerated=True), PLANNED, "q->n2"),
    "R28 kubevirt/kubevirt#9585 a drain that was called off": Case(
        evacuating_with_migrations, PLANNED, "q->n2"
    ),
    "R28 kubevirt/kubevirt#5177 without any migration left": Case(
        lambda: alone(vmi={"evacuation_node_name": "n1"}),
        IMPOSSIBLE,
        says=("o: KubeVirt is evacuating it",),
    ),
    "R30 openshift/hypershift#8974 its owner moves it": Case(
        lambda: alone(vmi={"eviction_strategy": "External"}),
        IMPOSSIBLE,
        says=("o: evictionStrategy External",),
    ),
    "R30 kubermatic/kubermatic#14449 KubeVirt's setting for those that name none": Case(
        lambda: in_the_way(
            LauncherConfiguration(eviction_strategy="External"),
            other(),
            q(vmi={"eviction_strategy": "LiveMigrate"}),
        ),
        PLANNED,
        "q->n2",
    ),
    "R30 kubermatic/kubermatic#11562 None says nothing of migrations": Case(
        lambda: alone(vmi={"eviction_strategy": "None"}), PLANNED, "o->n2"
    ),
    "R31 kubevirt/kubevirt#18063 a budget that allows no eviction": Case(
        under_one_budget, PLANNED, "o->n2 q->n2"
    ),
    "R31 kubevirt/kubevirt#2196 KubeVirt's own budget": Case(budget_of_kubevirt, PLANNED, "o->n2"),
    "R34 kubevirt/kubevirt#9300 a paused VM": Case(
        lambda: alone(vmi={"is_paused": True}), PLANNED, "o->n2"
    ),
    "R34 harvester/harvester#6002 and one that cannot be migrated": Case(
        lambda: alone(vmi={"is_paused": True, "live_migratable": None}), IMPOSSIBLE
    ),
    "R38 openshift/openshift-docs#98815 prefers to stay": Case(
        lambda: beside_q(annotations={PREFER_NO_EVICTION: ""}), PLANNED, "q->n2"
    ),
    "R38 kubevirt/community#258 an eviction is under way": Case(
        lambda: beside_q(annotations={EVICTION_IN_PROGRESS: "kubevirt"}), PLANNED, "q->n2"
    ),
    "R38 what every launcher pod bears": Case(
        lambda: alone(annotations={"descheduler.alpha.kubernetes.io/request-evict-only": ""}),
        PLANNED,
        "o->n2",
    ),
    "R38 kubevirt/monitoring#266 it has just moved": Case(
        lambda: in_the_way(
            other(),
            q(),
            migration("m", "o", "Succeeded", created_at=NOW - timedelta(minutes=3)),
        ),
        PLANNED,
        "q->n2",
    ),
    "R38 kubevirt/monitoring#85 it has just failed to": Case(
        lambda: in_the_way(
            other(), q(), migration("m", "o", "Failed", created_at=NOW - timedelta(minutes=3))
        ),
        PLANNED,
        "q->n2",
    ),
    "R40 kubevirt/kubevirt#6682 a dead node takes nothing": Case(
        lambda: dead_node(pods_leave=True), PLANNED, "q->n3"
    ),
    "R40 kubevirt/kubevirt#3332 whether its pods are leaving or not": Case(
        lambda: dead_node(pods_leave=False), PLANNED, "q->n3"
    ),
    "R40 kubevirt/kubevirt#10610 and nothing leaves it": Case(
        on_a_dead_node, IMPOSSIBLE, says=("node is not ready",)
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_public_case_is_decided_as_it_should_be(case: Case) -> None:
    assert_decided(case)
