"""Several VMs are pending at once."""

from collections import Counter

import pytest

from rebalancer.model.plan import Goal, Plan, Verdict
from rebalancer.model.snapshot import Snapshot
from tests.builders import cluster, node, pending_vm, pod, vm
from tests.strategies.decisions import plan_for


def verdicts(snapshot: Snapshot) -> dict[str, Verdict]:
    return {goal.subject.name: goal.verdict for goal in plan_for(snapshot).goals}


def goal_of(plan: Plan, name: str) -> Goal:
    [goal] = [goal for goal in plan.goals if goal.subject.name == name]
    return goal


def two_holes(*pending: tuple[str, str, int]) -> Snapshot:
    """10Gi can be opened on n1 by moving a to n3, and, at a higher cost, 6Gi on n2 by b to n4."""
    return cluster(
        node("n1", memory="16Gi"),
        node("n2", memory="16Gi"),
        node("n3", memory="4608Mi"),
        node("n4", memory="5Gi"),
        pod("fixed-1", on="n1", memory="6Gi"),
        vm("a", on="n1", memory="4608Mi"),
        pod("fixed-2", on="n2", memory="10Gi"),
        vm("b", on="n2", memory="5Gi"),
        *(pending_vm(name, memory, priority=priority) for name, memory, priority in pending),
    )


def test_of_equal_importance_more_vms_are_served_not_the_oldest() -> None:
    """The cheapest plan for the small one, which comes first, takes what the large one needs."""
    plan = plan_for(two_holes(("a-small", "6Gi", 0), ("b-large", "10Gi", 0)))
    assert goal_of(plan, "b-large").node == "n1"
    assert goal_of(plan, "a-small").node == "n2"


def test_a_more_important_vm_is_served_although_two_others_could_be() -> None:
    snapshot = cluster(
        node("n1", memory="16Gi"),
        node("n2", memory="8Gi"),
        vm("a", on="n1", memory="6Gi"),
        pending_vm("high", "16Gi", priority=10),
        pending_vm("low-1", "12Gi"),
        pending_vm("low-2", "8Gi"),
    )
    assert verdicts(snapshot)["high"] is Verdict.PLANNED
    assert verdicts(snapshot)["low-1"] is Verdict.WAITING


def test_a_vm_that_fits_now_keeps_its_place_from_others_plans() -> None:
    """Moving a to n2 would leave none for the VM that only the scheduler has to place."""
    snapshot = cluster(
        node("n1", memory="16Gi"),
        node("n2", memory="6Gi"),
        vm("a", on="n1", memory="6Gi"),
        pending_vm("fits", "5Gi", priority=5, node_selector={"kubernetes.io/hostname": "n2"}),
        pending_vm("large", "14Gi"),
    )
    plan = plan_for(snapshot)
    assert (goal_of(plan, "fits").verdict, goal_of(plan, "fits").node) == (Verdict.FITS, "n2")
    assert goal_of(plan, "large").verdict is Verdict.WAITING
    assert plan.moves == ()


@pytest.mark.parametrize(("spare_gib", "served"), [(100, 50), (40, 20), (1, 0)])
def test_equal_vms_that_restart_after_a_node_died_are_served_as_far_as_room_goes(
    spare_gib: int, served: int
) -> None:
    """On each of 50 nodes a VM is in the way of one of them; the spare node has room for some."""
    pool = {"pool": "a"}
    snapshot = cluster(
        *(node(f"n{i}", memory="8Gi", labels=pool) for i in range(50)),
        *(pod(f"fixed-{i}", on=f"n{i}", memory="5Gi") for i in range(50)),
        *(vm(f"v{i}", on=f"n{i}", memory="2Gi") for i in range(50)),
        node("spare", memory="128Gi"),
        pod("fixed", on="spare", memory=f"{128 - spare_gib}Gi"),
        *(pending_vm(f"p{i:02}", "3Gi", node_selector=pool) for i in range(50)),
    )
    found = Counter(verdicts(snapshot).values())
    assert found[Verdict.PLANNED] == served
    assert found[Verdict.FITS] == 0


def test_what_bars_equal_vms_is_told_once() -> None:
    snapshot = cluster(
        node("n1", memory="8Gi"),
        pod("fixed", on="n1", memory="6Gi"),
        *(pending_vm(name, "4Gi") for name in ("p1", "p2", "p3")),
    )
    plan = plan_for(snapshot)
    assert {goal.verdict for goal in plan.goals} == {Verdict.IMPOSSIBLE}
    first, *others = plan.goals
    assert len(first.reasons) > 2
    for goal in others:
        assert [reason.code for reason in goal.reasons] == [first.reasons[0].code, "as-another"]
        assert "default/p1" in goal.reasons[1].message
