"""Which nodes cost least to empty."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebalancer.drain.cheapest import Cheapest, cheapest_to_empty
from rebalancer.drain.proposal import Drain, left_behind, propose_drains
from rebalancer.model.keys import SCHEDULABLE
from rebalancer.model.objects import Condition, Taint
from rebalancer.model.plan import Verdict
from rebalancer.model.snapshot import Snapshot
from rebalancer.planning import checker
from rebalancer.planning.checker import violations
from rebalancer.planning.outlook import change_by
from tests.builders import Thing, migrating, node, vm
from tests.drain.views import small_clusters, view, view_of

STUCK = {"live_migratable": Condition("False", "DisksNotLiveMigratable", "its disk is there")}


def choose(wanted: int, *things: Thing, **selector: str) -> Cheapest:
    return cheapest_to_empty(wanted, selector, view(*things))


def left_out(found: Cheapest) -> dict[str, str]:
    return {reason.node: reason.code for reason in found.left_out}


def three_nodes() -> list[Thing]:
    """Emptying n1 copies 12 GiB, n2 4 GiB, n3 8 GiB."""
    sizes = {"n1": "12Gi", "n2": "4Gi", "n3": "8Gi"}
    nodes = [node(name, memory="32Gi") for name in sizes]
    return [*nodes, *(vm(f"on-{name}", on=name, memory=size) for name, size in sizes.items())]


def test_nodes_with_the_least_to_copy_are_chosen_and_proven_cheapest() -> None:
    found = choose(2, *three_nodes())
    assert found.nodes == ("n2", "n3")
    assert (found.cost, found.bound, found.proven) == (42 + 74, 42 + 74, True)
    targets = {move.target for proposal in found.chosen for move in proposal.moves}
    assert targets == {"n1"}


def test_a_node_without_vms_costs_nothing() -> None:
    found = choose(1, *three_nodes(), node("n4", memory="1Gi"))
    assert (found.nodes, found.cost, found.proven) == (("n4",), 0, True)


def test_a_node_whose_plan_would_break_a_rule_is_not_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checker, "violations", lambda *_: ["n2 would be overfilled"])
    found = choose(1, node("n1"), vm("a", on="n1"), node("n2"), vm("b", on="n2"))
    assert found.nodes == ()
    assert left_out(found) == {"n1": "plan-rejected", "n2": "plan-rejected"}


def test_vms_are_only_sent_to_the_next_cheap_node_if_they_must() -> None:
    """n3 would be the emptiest, and is spared as long as n2 has room."""
    n1 = node("n1", memory="16Gi"), vm("a", on="n1", memory="1Gi")
    n2 = node("n2", memory="16Gi"), vm("b", on="n2", memory="8Gi")
    n3 = node("n3", memory="16Gi"), vm("c", on="n3", memory="2Gi")
    found = choose(2, *n1, *n2, *n3)
    assert found.nodes == ("n1", "n3")
    assert [m.target for p in found.chosen for m in p.moves] == ["n2", "n2"]


def test_fewer_nodes_are_chosen_where_no_more_can_be_emptied() -> None:
    full = [
        thing
        for name in ("n1", "n2", "n3")
        for thing in (node(name, memory="8Gi"), vm(f"v-{name}", on=name, memory="4Gi"))
    ]
    found = choose(3, *full)
    assert found.nodes == ("n1",)
    assert not found.proven
    assert left_out(found) == {"n2": "leaving", "n3": "cannot-leave"}


def test_a_dearer_node_is_chosen_where_room_for_the_cheapest_would_cost_more() -> None:
    """a has room on n3 alone, and only once c has left it."""
    pool = {"pool": "a"}
    found = choose(
        1,
        node("n1", memory="16Gi", labels=pool),
        vm("a", on="n1", memory="8Gi", node_selector={"takes": "a"}),
        node("n2", memory="16Gi", labels=pool),
        vm("b", on="n2", memory="10Gi"),
        node("n3", memory="16Gi", labels={"takes": "a"}),
        vm("c", on="n3", memory="9Gi"),
        node("n4", memory="16Gi"),
        **pool,
    )
    assert (found.nodes, found.cost, found.bound, found.proven) == (("n2",), 90, 74, False)


@pytest.mark.parametrize(
    ("extra", "code"),
    [
        ([node("x", is_ready=False)], "node-not-ready"),
        ([node("x", drain_sign="label rebalancer/drain")], "already-draining"),
        ([node("x", taints=(Taint("kubevirt.io/drain", "NoSchedule"),))], "already-draining"),
        ([node("x", labels={SCHEDULABLE: "false"})], "runs-no-vms"),
        ([node("x", taints=(Taint("node-role.kubernetes.io/master", "NoSchedule"),))],
         "control-plane"),
        ([node("x"), vm("s", on="x", memory="1Gi", vmi=STUCK)], "cannot-leave"),
        ([node("x"), *migrating(vm("m", on="x", memory="1Gi"), to="n1")], "leaving"),
    ],
)  # fmt: skip
def test_a_node_that_is_left_out_is_told_with_the_reason(extra: list[Thing], code: str) -> None:
    found = choose(1, *three_nodes(), *extra)
    assert left_out(found)["x"] == code
    assert found.nodes == ("n2",)
    assert found.proven


def test_what_keeps_a_vm_comes_with_what_a_person_can_do() -> None:
    (reason,) = choose(
        1, *three_nodes(), node("x"), vm("s", on="x", memory="1Gi", vmi=STUCK)
    ).left_out
    assert reason.object == "default/s"
    assert reason.message.endswith("; mend what KubeVirt names, or stop the VM")


def test_only_nodes_with_the_labels_are_looked_at() -> None:
    found = choose(1, *three_nodes(), node("n4", memory="32Gi"), pool="a")
    assert (found.nodes, found.bound, found.left_out) == ((), None, ())
    found = choose(1, *three_nodes(), node("n4", memory="32Gi", labels={"pool": "a"}), pool="a")
    assert found.nodes == ("n4",)


@settings(max_examples=60)
@given(small_clusters(), st.integers(1, 2))
def test_what_is_chosen_can_be_emptied_and_no_other_choice_beats_the_bound(
    snapshot: Snapshot, wanted: int
) -> None:
    found = cheapest_to_empty(wanted, {}, view_of(snapshot))
    outlook = snapshot
    for proposal in found.chosen:
        assert not left_behind(proposal.goal)
        assert {move.target for move in proposal.moves}.isdisjoint(found.nodes)
        assert violations(outlook, [proposal.goal], proposal.moves) == []
        outlook = outlook.with_change(change_by(proposal, outlook))
    costs = other_choices(snapshot, wanted)
    if found.proven:
        assert found.cost == found.bound
    if found.bound is not None:
        assert all(cost >= found.bound for cost in costs)
    if costs and wanted == 1:
        assert found.chosen
        assert found.cost == min(costs)


def other_choices(snapshot: Snapshot, wanted: int) -> list[float]:
    """What emptying each set of so many nodes costs, of those where that works."""
    costs = []
    for names in combinations([each.name for each in snapshot.nodes], wanted):
        proposals = list(propose_drains([Drain(n, "") for n in names], view_of(snapshot)))
        goals = [proposal.goal for proposal in proposals]
        if all(g.verdict in {Verdict.MET, Verdict.PLANNED} and not left_behind(g) for g in goals):
            costs.append(sum(goal.cost or 0 for goal in goals))
    return costs
