"""Public reports, each a small cluster with the decision that is right for it.

A case is named after its place in our list and the report that it comes from.
"""

from datetime import timedelta
from typing import Any

import pytest

from rebalancer.model.keys import OPT_OUT
from rebalancer.model.objects import (
    Condition,
    LabelSelector,
    Node,
    NodeSelectorTerm,
    PersistentVolume,
    PersistentVolumeClaim,
    PodAffinityTerm,
    Requirement,
)
from rebalancer.model.plan import Verdict
from rebalancer.model.snapshot import Snapshot
from tests.builders import NOW, Launched, Thing, cluster, migration, node, pending_vm, pod, vm
from tests.strategies.decisions import Case, assert_decided, plan_for


def scattered() -> Snapshot:
    """Free Mi: n0 1100, n1 700, n2 500, n3 400, n4 250; the pending pod asks 2048 in all."""
    free = {"n1": 700, "n2": 500, "n3": 400, "n4": 250}
    return cluster(
        *(node(name, memory="8192Mi") for name in ("n0", *free)),
        pod("fixed-n0", on="n0", memory=f"{8192 - 1100 - 512 - 450}Mi"),
        *(pod(f"fixed-{name}", on=name, memory=f"{8192 - mi}Mi") for name, mi in free.items()),
        vm("a", on="n0", memory="512Mi"),
        vm("b", on="n0", memory="450Mi"),
        pending_vm("p", "2048Mi"),
    )


def without_a_second_mover() -> Snapshot:
    snapshot = scattered()
    pinned = vm("b", on="n0", memory="450Mi", node_selector={"kubernetes.io/hostname": "n0"})
    return cluster(
        *snapshot.nodes,
        *(p for p in snapshot.pods if p.vmi_uid != "vmi-b"),
        *(v for v in snapshot.vmis if v.name != "b"),
        pinned,
    )


def one_node() -> Snapshot:
    return cluster(
        node("n1", memory="98Gi"),
        pod("fixed", on="n1", memory="9Gi"),
        vm("a", on="n1", memory="4Gi"),
        pending_vm("p", "93Gi"),
    )


def full_cluster() -> Snapshot:
    free_mebibytes = {"n1": 1024, "n2": 1024, "n3": 512, "n4": 512}
    return cluster(
        *(node(name, memory="32Gi") for name in free_mebibytes),
        *(
            vm(f"{name}-{half}", on=name, memory=f"{(32 * 1024 - mi) // 2}Mi")
            for name, mi in free_mebibytes.items()
            for half in "ab"
        ),
        pending_vm("p", "4Gi"),
    )


def node_too_small() -> Snapshot:
    return cluster(
        node("n1", memory="16Gi"),
        node("n2", memory="8Gi"),
        vm("a", on="n1", memory="4Gi"),
        pending_vm("p", "17Gi"),
    )


def without_kvm(name: str, cpu: str, memory: str) -> Node:
    return node(name, memory=memory, cpu=cpu, resources={"devices.kubevirt.io/kvm": "0"})


def no_kvm_elsewhere() -> Snapshot:
    return cluster(
        without_kvm("n1", "4", "16163984Ki"),
        without_kvm("n2", "40", "65605112Ki"),
        node("n3", memory="16Gi"),
        pod("fixed", on="n3", memory="6Gi"),
        vm("x", on="n3", memory="6Gi"),
        pending_vm("p", "8Gi"),
    )


def kvm_slots_all_taken() -> Snapshot:
    """A device that is offered but used up bars like one that is not offered."""
    return cluster(
        node("n1", memory="64Gi", resources={"devices.kubevirt.io/kvm": "1"}),
        node("n3", memory="16Gi"),
        vm("y", on="n1", memory="1Gi", node_selector={"kubernetes.io/hostname": "n1"}),
        pod("fixed", on="n3", memory="6Gi"),
        vm("x", on="n3", memory="6Gi"),
        pending_vm("p", "8Gi"),
    )


def ssd_node(*others: Thing) -> Snapshot:
    return cluster(
        node("n1", memory="32Gi", labels={"disktype": "ssd"}),
        node("n2", memory="32Gi"),
        node("n3", memory="32Gi"),
        pod("fixed-1", on="n1", memory="16Gi"),
        pod("fixed-2", on="n2", memory="22Gi"),
        pod("fixed-3", on="n3", memory="22Gi"),
        vm("q", on="n1", memory="6Gi"),
        *others,
        pending_vm("p", "8Gi", node_selector={"disktype": "ssd"}),
    )


def alone_on_ssd_node(only: Launched) -> Snapshot:
    """As `ssd_node`, where that VM is the one in the way."""
    return cluster(
        node("n1", memory="8Gi", labels={"disktype": "ssd"}),
        node("n2", memory="32Gi"),
        only,
        pending_vm("p", "8Gi", node_selector={"disktype": "ssd"}),
    )


PINNED = vm("p0", on="n1", memory="6Gi", node_selector={"kubernetes.io/hostname": "n1"})
ONLY_N1 = (NodeSelectorTerm((Requirement("kubernetes.io/hostname", "In", ("n1",)),)),)
BOUND_BY_AFFINITY = vm("p0", on="n1", memory="6Gi", node_affinity=ONLY_N1)
BOUND_BY_VOLUME = (
    PersistentVolumeClaim("default", "disk", volume_name="local"),
    PersistentVolume("local", node_affinity=ONLY_N1),
    vm("p0", on="n1", memory="6Gi", claim_names=("disk",)),
)
READ_WRITE_ONCE = vm(
    "rwo",
    on="n1",
    memory="4Gi",
    vmi={
        "live_migratable": Condition(
            "False", "DisksNotLiveMigratable", "cannot migrate VMI: PVC rwo is not shared"
        )
    },
)
JUST_STARTED = vm("new", on="n1", memory="4Gi", vmi={"live_migratable": None})
OPTED_OUT = vm("mine", on="n1", memory="4Gi", vmi={"annotations": {OPT_OUT: "true"}})


def gated_beside_unschedulable() -> Snapshot:
    gated = pending_vm("gated", "8Gi", unschedulable_since=None, is_gated=True, priority=10)
    return cluster(
        node("n1", memory="16Gi"),
        node("n2", memory="16Gi"),
        vm("a", on="n1", memory="6Gi"),
        pod("fixed-1", on="n1", memory="6Gi"),
        pod("fixed-2", on="n2", memory="10Gi"),
        gated,
        pending_vm("p", "8Gi"),
    )


def not_tried_yet() -> Snapshot:
    return cluster(
        node("n1", memory="16Gi"),
        node("n2", memory="16Gi"),
        vm("a", on="n1", memory="10Gi"),
        pod("fixed", on="n2", memory="6Gi"),
        pending_vm("p", "12Gi", unschedulable_since=None),
    )


def within_grace() -> Snapshot:
    return cluster(
        node("n1", memory="16Gi"),
        node("n2", memory="16Gi"),
        vm("a", on="n1", memory="10Gi"),
        pod("fixed", on="n2", memory="6Gi"),
        pending_vm("p", "12Gi", unschedulable_since=NOW - timedelta(seconds=14)),
    )


def leaving_replica() -> Snapshot:
    apart = PodAffinityTerm(
        topology_key="kubernetes.io/hostname",
        selector=LabelSelector((Requirement("group", "In", ("k",)),)),
        namespaces=("default",),
    )
    group: dict[str, Any] = {"labels": {"group": "k"}, "pod_anti_affinity": (apart,)}
    return cluster(
        *(node(f"n{i}", memory="32Gi") for i in (1, 2, 3)),
        vm("k2", on="n2", memory="8Gi", **group),
        vm("k3", on="n3", memory="8Gi", **group),
        pod("old-k1", on="n1", memory="8Gi", is_terminating=True, **group),
        pending_vm("k1", "8Gi", **group),
    )


def leaving_pod_with_memory() -> Snapshot:
    """The same for room: what leaves by itself needs no migration."""
    return cluster(
        node("n1", memory="16Gi"),
        node("n2", memory="16Gi"),
        pod("old", on="n1", memory="10Gi", is_terminating=True),
        vm("a", on="n2", memory="10Gi"),
        pending_vm("p", "12Gi"),
    )


def endless_workload_update() -> Snapshot:
    failed = [
        migration(
            f"kubevirt-workload-update-{i}", "a", "Failed", created_at=NOW - timedelta(days=i)
        )
        for i in range(1, 6)
    ]
    return cluster(
        node("n1", memory="16Gi"),
        vm("a", on="n1", memory="8Gi"),
        *failed,
        migration("kubevirt-workload-update-0", "a", "Pending"),
        pending_vm("p", "12Gi"),
    )


def old_failures_only() -> Snapshot:
    """Migrations that ended long ago are in nobody's way."""
    failed = migration("kubevirt-workload-update-1", "a", "Failed", created_at=NOW - timedelta(1))
    return cluster(
        node("n1", memory="16Gi"),
        node("n2", memory="16Gi"),
        vm("a", on="n1", memory="8Gi"),
        pod("fixed", on="n2", memory="6Gi"),
        failed,
        pending_vm("p", "12Gi"),
    )


def one_big_or_two_small(big_gib: int = 64) -> Snapshot:
    """Need 16Gi on n1, 4Gi free: the two small ones are two moves and 16Gi."""
    return cluster(
        node("n1", memory=f"{20 + big_gib}Gi", labels={"zone": "a"}),
        node("n2", memory="70Gi"),
        vm("big", on="n1", memory=f"{big_gib}Gi"),
        vm("s1", on="n1", memory="8Gi"),
        vm("s2", on="n1", memory="8Gi"),
        pending_vm("p", "16Gi", node_selector={"zone": "a"}),
    )


CASES = {
    "R01 siutsin/otaru#2804 scattered memory": Case(
        scattered, {"p": Verdict.PLANNED}, "a->n1 b->n2", ("proven",)
    ),
    "R01 siutsin/otaru#2805 without the second mover": Case(
        without_a_second_mover, {"p": Verdict.IMPOSSIBLE}
    ),
    "R02 harvester/harvester#3136 one node": Case(
        one_node, {"p": Verdict.IMPOSSIBLE}, says=("no other node",)
    ),
    "R02 rwlove/home-ops#12529 full cluster": Case(
        full_cluster, {"p": Verdict.IMPOSSIBLE}, says=("needs 4096 MiB", "together have 3072 MiB")
    ),
    "R02 a VM larger than any node": Case(
        node_too_small, {"p": Verdict.IMPOSSIBLE}, says=("the largest eligible node has 16384 MiB",)
    ),
    "R03 kubevirt/kubevirt#7614 no KVM on the nodes with room": Case(
        no_kvm_elsewhere,
        {"p": Verdict.IMPOSSIBLE},
        says=("devices.kubevirt.io/kvm: needs 1 (1), headroom 0 of 0", "x: no other node takes it"),
    ),
    "R03 kubevirt/kubevirt#12210 all KVM slots taken": Case(
        kvm_slots_all_taken,
        {"p": Verdict.IMPOSSIBLE},
        says=("devices.kubevirt.io/kvm: needs 1 (1), headroom 0 of 1",),
    ),
    "R06 kubevirt/kubevirt#5565 pinned to its node": Case(
        lambda: ssd_node(PINNED), {"p": Verdict.PLANNED}, "q->n2"
    ),
    "R06 harvester/harvester#6509 by its affinity": Case(
        lambda: ssd_node(BOUND_BY_AFFINITY), {"p": Verdict.PLANNED}, "q->n2"
    ),
    "R06 by a volume": Case(lambda: ssd_node(*BOUND_BY_VOLUME), {"p": Verdict.PLANNED}, "q->n2"),
    "R08 kubevirt/kubevirt#12801 not migratable storage": Case(
        lambda: ssd_node(READ_WRITE_ONCE, JUST_STARTED),
        {"p": Verdict.PLANNED},
        "q->n2",
    ),
    "R08 kubevirt/kubevirt#11737 a disk of its node": Case(
        lambda: alone_on_ssd_node(READ_WRITE_ONCE),
        {"p": Verdict.IMPOSSIBLE},
        says=("rwo: KubeVirt cannot live-migrate it (DisksNotLiveMigratable",),
    ),
    "R08 not said yet": Case(
        lambda: alone_on_ssd_node(JUST_STARTED),
        {"p": Verdict.IMPOSSIBLE},
        says=("new: KubeVirt has not said yet",),
    ),
    "R08 openshift/openshift-docs#98815 opted out": Case(
        lambda: ssd_node(OPTED_OUT), {"p": Verdict.PLANNED}, "q->n2"
    ),
    "R09 kubernetes-sigs/kueue#9541 a gated pod": Case(
        gated_beside_unschedulable,
        {"gated": Verdict.NOT_ABOUT_ROOM, "p": Verdict.PLANNED},
        "a->n2",
    ),
    "R09 openshift/openshift-docs#83412 not tried yet": Case(not_tried_yet, {"p": Verdict.WAITING}),
    "R09 openshift/instaslice-operator#82 within the grace time": Case(
        within_grace, {"p": Verdict.WAITING}, says=("graceSeconds (15)",)
    ),
    "R11 ryan4yin/k8s-gitops#2 a leaving pod holds its place": Case(
        leaving_replica, {"k1": Verdict.WAITING}, says=("old-k1",)
    ),
    "R11 the same for memory": Case(
        leaving_pod_with_memory, {"p": Verdict.WAITING}, says=("once pod default/old has left",)
    ),
    "R16 kubevirt/kubevirt#16353 endless migrations on one node": Case(
        endless_workload_update, {"p": Verdict.IMPOSSIBLE}
    ),
    "R16 failures of long ago": Case(old_failures_only, {"p": Verdict.PLANNED}, "a->n2"),
    "R25 kubevirt/kubevirt#12848 bytes count, not moves": Case(
        one_big_or_two_small, {"p": Verdict.PLANNED}, "s1->n2 s2->n2"
    ),
    "R25 kubevirt/kubevirt#14367 of as many bytes the fewer moves": Case(
        lambda: one_big_or_two_small(16), {"p": Verdict.PLANNED}, "big->n2"
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_public_case_is_decided_as_it_should_be(case: Case) -> None:
    assert_decided(case)


def test_every_refused_vm_has_a_reason_of_its_own() -> None:
    """R08, R06: each VM that could have been in the way says why it stays."""
    # q can only go to n2 and n3; without room there, nothing can be planned.
    snapshot = ssd_node(PINNED, READ_WRITE_ONCE)
    full = cluster(
        *snapshot.nodes,
        *snapshot.pods,
        *snapshot.vmis,
        pod("more-2", on="n2", memory="8Gi"),
        pod("more-3", on="n3", memory="8Gi"),
    )
    refused = {refusal.vmi.name: refusal.code for refusal in plan_for(full).refused}
    assert refused == {
        "p0": "no-other-node",
        "q": "no-other-node",
        "rwo": "not-live-migratable",
    }


def test_a_vm_that_was_migrated_before_does_not_weaken_a_proof() -> None:
    """KubeVirt gives a migration's target pod anti-affinity to its own VM's pods, and it stays."""
    itself = PodAffinityTerm(
        topology_key="kubernetes.io/hostname",
        selector=LabelSelector((Requirement("kubevirt.io/created-by", "In", ("vmi-a",)),)),
        namespaces=("default",),
    )
    snapshot = cluster(
        node("n1", memory="16Gi"),
        node("n2", memory="16Gi"),
        vm("a", on="n1", memory="4Gi", pod_anti_affinity=(itself,)),
        vm("c", on="n1", memory="4Gi"),
        vm("b", on="n2", memory="10Gi"),
        pending_vm("p", "15Gi"),
    )
    (goal,) = plan_for(snapshot).goals
    assert goal.verdict is Verdict.IMPOSSIBLE
    assert goal.proven


@pytest.mark.parametrize(
    ("limit_seconds", "verdict"),
    [(None, Verdict.PLANNED), (74, Verdict.PLANNED), (73, Verdict.NOT_WORTH_IT)],
)
def test_a_plan_that_costs_more_than_is_allowed_is_told_and_not_made(
    limit_seconds: float | None, verdict: Verdict
) -> None:
    """Moving 8 GiB costs 74 s."""
    snapshot = cluster(
        node("n1", memory="16Gi"),
        node("n2", memory="8Gi"),
        vm("a", on="n1", memory="8Gi"),
        pending_vm("p", "12Gi"),
    )
    plan = plan_for(snapshot, max_cost_seconds=limit_seconds)
    [goal] = plan.goals
    assert goal.verdict is verdict
    assert len(plan.moves) == (verdict is Verdict.PLANNED)
    if verdict is Verdict.NOT_WORTH_IT:
        assert goal.reasons[0].message == (
            "1 migration would make room, at a cost of 74.0 s; maxCostSeconds allows 73.0"
        )
