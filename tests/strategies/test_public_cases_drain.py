"""Public reports about emptying nodes.

A case is named after its place in our list and the report that it comes from.
"""

from typing import Any

import pytest

from rebalancer.model import keys
from rebalancer.model.objects import (
    Condition,
    LabelSelector,
    LauncherConfiguration,
    PodDisruptionBudget,
    Requirement,
    Taint,
)
from rebalancer.model.plan import Verdict
from rebalancer.model.snapshot import Snapshot
from tests.builders import Launched, Thing, cluster, migrating, node, pod, vm
from tests.strategies.decisions import Case, assert_decided, drain_plan

PLANNED = {"n1": Verdict.PLANNED}
MARKED: dict[str, Any] = {"drain_sign": "label rebalancer/drain", "is_unschedulable": True}
CORDONED: dict[str, Any] = {
    "is_unschedulable": True,
    "taints": (Taint("node.kubernetes.io/unschedulable", "NoSchedule"),),
}
TAINTED: dict[str, Any] = {"taints": (Taint("kubevirt.io/drain", "NoSchedule"),)}
NOT_MIGRATABLE = {
    "live_migratable": Condition("False", "DisksNotLiveMigratable", "its disk is on the node")
}


def two_nodes(*on_n1: Thing, **sign: Any) -> Snapshot:
    """n1 bears a sign; n2 has room for everything."""
    n1 = node("n1", memory="64Gi", **(sign or MARKED))
    return cluster(n1, node("n2", memory="64Gi"), *on_n1)


def small(name: str, on: str = "n1", **fields: Any) -> Launched:
    return vm(name, on=on, memory="8Gi", **fields)


def pieces(*, movable: bool) -> Snapshot:
    """The free room of n2 and n3 together is just that of n1's VMs, but no piece fits a fifth."""
    return cluster(
        node("n1", memory="64Gi", **MARKED),
        node("n2", memory="64Gi"),
        node("n3", memory="64Gi"),
        *(small(f"v{i}") for i in range(1, 6)),
        pod("fixed2", on="n2", memory="40Gi"),
        vm("s", on="n2", memory="4Gi") if movable else pod("s", on="n2", memory="4Gi"),
        pod("fixed3", on="n3", memory="44Gi"),
    )


def under_user_budget(count: int) -> Snapshot:
    selector = LabelSelector((Requirement("pool", "In", ("a",)),))
    budget = PodDisruptionBudget("default", "keep", selector, disruptions_allowed=0)
    pool = [small(f"v{i}", labels={"pool": "a"}) for i in range(1, count + 1)]
    return two_nodes(*pool, budget)


CASES = {
    "R26-harvester#5306-one-is-tied": Case(
        lambda: two_nodes(small("vm0"), small("vm1", node_selector={keys.HOSTNAME: "n1"})),
        PLANNED,
        "vm0->n2",
        ("default/vm1 stays: no other node takes it now (n2: NodeAffinity)",),
    ),
    "R26-harvester#5350-one-cannot-migrate": Case(
        lambda: two_nodes(small("vm0"), small("vm1", vmi=NOT_MIGRATABLE)),
        PLANNED,
        "vm0->n2",
        ("default/vm1 stays: KubeVirt cannot live-migrate it (DisksNotLiveMigratable",),
    ),
    "R26-harvester#2723-only-the-stuck-one-is-left": Case(
        lambda: two_nodes(small("vm1", vmi=NOT_MIGRATABLE)),
        {"n1": Verdict.IMPOSSIBLE},
        says=("label rebalancer/drain: VMs 1 that cannot leave", "mend what KubeVirt names"),
    ),
    "R27-hyperconverged-cluster-operator#823-cordoned-only": Case(
        lambda: two_nodes(small("a"), small("b"), **CORDONED), {}
    ),
    "R27-hyperconverged-cluster-operator#823-with-drain-taint": Case(
        lambda: two_nodes(small("a"), small("b"), **TAINTED),
        PLANNED,
        "a->n2 b->n2",
        ("taint kubevirt.io/drain:NoSchedule: VMs 2 to be migrated",),
    ),
    "R30-hypershift#8974-external-keeps-off": Case(
        lambda: two_nodes(
            small("a", vmi={"eviction_strategy": "LiveMigrate"}),
            small("b", vmi={"eviction_strategy": "External"}),
            small("c", vmi={"eviction_strategy": "None"}),
            small("d"),
        ),
        PLANNED,
        "a->n2 c->n2 d->n2",
        ("default/b stays: evictionStrategy External",),
    ),
    "R30-kubermatic#14449-external-by-the-cluster": Case(
        lambda: two_nodes(
            small("a", vmi={"eviction_strategy": "LiveMigrate"}),
            small("d"),
            LauncherConfiguration(eviction_strategy="External"),
        ),
        PLANNED,
        "a->n2",
        ("default/d stays: evictionStrategy External (the KubeVirt CR's",),
    ),
    "R31-kubevirt#18063-a-user-budget-bars-no-migration": Case(
        lambda: under_user_budget(3),
        PLANNED,
        "v1->n2 v2->n2 v3->n2",
        ("PodDisruptionBudget default/keep allows no disruption now",),
    ),
    "R32-openshift-docs#60910-sums-are-not-enough": Case(
        lambda: cluster(
            node("n1", memory="64Gi", **MARKED),
            node("n2", memory="64Gi"),
            node("n3", memory="64Gi"),
            vm("a", on="n1", memory="16Gi"),
            pod("fixed2", on="n2", memory="56Gi"),
            pod("fixed3", on="n3", memory="56Gi"),
        ),
        {"n1": Verdict.IMPOSSIBLE},
        says=("default/a stays: no other node takes it now (n2, n3: memory: needs 17179869184",),
    ),
    "R32-home-ops#1963-the-other-node-is-full": Case(
        lambda: cluster(
            node("n1", memory="64Gi", **MARKED),
            node("n2", memory="64Gi"),
            small("a"),
            pod("fixed2", on="n2", memory="63Gi"),
        ),
        {"n1": Verdict.IMPOSSIBLE},
        says=("headroom 1024 MiB",),
    ),
    "R33-openshift-docs#60910-another-makes-room": Case(
        lambda: pieces(movable=True),
        PLANNED,
        "s->n3 v1->n2 v2->n2 v3->n2 v4->n3 v5->n3",
        ("VMs 5 to be migrated, 1 moved elsewhere to make room for them", "n1: proven"),
    ),
    "R33-openshift-docs#60910-nobody-can-make-room": Case(
        lambda: pieces(movable=False),
        PLANNED,
        "v1->n2 v2->n3 v3->n2 v4->n3",
        (
            "default/v5 stays: no other node takes it now",
            "VMs 4 to be migrated, 1 that cannot leave",
        ),
    ),
    "R34-kubevirt#9300-a-paused-one-leaves": Case(
        lambda: two_nodes(small("v", vmi={"is_paused": True})), PLANNED, "v->n2"
    ),
    "R34-harvester#6002-paused-and-tied": Case(
        lambda: two_nodes(small("v", vmi={"is_paused": True}, node_selector={keys.HOSTNAME: "n1"})),
        {"n1": Verdict.IMPOSSIBLE},
    ),
    "R40-kubevirt#6682-a-dead-node-is-no-source": Case(
        lambda: two_nodes(small("v"), is_ready=False, **MARKED),
        {"n1": Verdict.IMPOSSIBLE},
        says=("node n1 is not ready",),
    ),
    "kubectl-drain-beside-us": Case(
        lambda: two_nodes(
            *migrating(small("a"), to="n2"),
            small("b", vmi={"evacuation_node_name": "n1"}),
            small("c"),
        ),
        PLANNED,
        "c->n2",
        ("default/a: it has 2 live launcher pods", "default/b: KubeVirt is evacuating it"),
    ),
    "nothing-is-left": Case(two_nodes, {"n1": Verdict.MET}, says=("no VM is left",)),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_drain_is_decided_as_its_report_asks(case: Case) -> None:
    assert_decided(case, drain_plan)


def test_cordoned_nodes_are_emptied_where_the_policy_says_so() -> None:
    plan = drain_plan(two_nodes(small("a"), small("b"), **CORDONED), cordonIsDrain=True)
    assert [move.vmi.name for move in plan.moves] == ["a", "b"]


def test_no_vm_is_sent_to_another_node_that_is_drained() -> None:
    snapshot = cluster(
        node("n1", memory="64Gi", **MARKED),
        node("n2", memory="64Gi", **MARKED),
        node("n3", memory="20Gi"),
        small("a"),
        small("b", on="n2"),
    )
    plan = drain_plan(snapshot)
    assert {(move.vmi.name, move.target) for move in plan.moves} == {("a", "n3"), ("b", "n3")}


def reserve() -> Snapshot:
    """With n1 empty, n2 and n3 cannot take over from each other."""
    return cluster(
        node("n1", memory="16Gi", **MARKED),
        node("n2", memory="16Gi"),
        node("n3", memory="16Gi"),
        vm("a", on="n1", memory="4Gi"),
        vm("b", on="n2", memory="8Gi"),
        vm("c", on="n3", memory="8Gi"),
    )


def test_a_drain_tells_which_losses_would_then_leave_vms_down() -> None:
    plan = drain_plan(reserve())
    [reason] = [r for r in plan.goals[0].reasons if r.code == "failover-lost"]
    assert plan.moves
    assert "would leave 1 VMs down (default/" in reason.message


def test_a_drain_that_would_cost_the_failover_reserve_is_not_begun_where_that_is_kept() -> None:
    plan = drain_plan(reserve(), keepFailoverReserve=True)
    assert not plan.moves
    assert plan.goals[0].verdict is Verdict.NOT_WORTH_IT


def test_evacuees_are_spread_over_the_nodes() -> None:
    snapshot = cluster(
        node("n1", memory="64Gi", **MARKED),
        *(node(f"n{i}", memory="64Gi") for i in range(2, 6)),
        *(small(f"v{i}") for i in range(4)),
    )
    targets = [move.target for move in drain_plan(snapshot).moves]
    assert sorted(targets) == ["n2", "n3", "n4", "n5"]
