"""A pool emptied node by node."""

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from rebalancer.drain.pool import pool_of
from rebalancer.drain.rolling import Rolling, Turn, rolling_turns
from rebalancer.model.objects import Condition, LabelSelector, PodDisruptionBudget, Requirement
from rebalancer.model.snapshot import Snapshot
from rebalancer.planning import checker
from rebalancer.planning.checker import violations
from rebalancer.planning.context import PlanningContext
from rebalancer.planning.replay import replayed
from rebalancer.policy.model import PlanningPolicy
from rebalancer.scheduling.state import ClusterState
from tests.builders import Thing, cluster, migration, node, pod, vm
from tests.drain.views import small_clusters, view_of

STUCK = {"live_migratable": Condition("False", "DisksNotLiveMigratable", "its disk is there")}


def roll(*things: Thing) -> Rolling:
    return roll_over(cluster(*things))


def roll_over(snapshot: Snapshot) -> Rolling:
    names, left_out = pool_of(snapshot, {})
    return Rolling(tuple(rolling_turns(names, view_of(snapshot))), left_out)


def moves(turn: Turn) -> list[str]:
    return [f"{move.vmi.name}->{move.target}" for move in turn.moves]


def test_nodes_take_turns_and_room_of_those_before_is_used() -> None:
    found = roll(
        node("n1", memory="16Gi"),
        vm("a", on="n1", memory="12Gi"),
        node("n2", memory="16Gi"),
        vm("b", on="n2", memory="2Gi"),
        node("n3", memory="16Gi"),
        vm("c", on="n3", memory="13Gi"),
    )
    assert [(turn.node, moves(turn)) for turn in found.turns] == [
        ("n2", ["b->n1"]),
        ("n3", ["c->n2"]),
        ("n1", ["b->n2", "a->n3"]),
    ]
    assert not found.stuck


def test_a_node_that_lacks_room_has_its_turn_once_another_was_emptied() -> None:
    """a may go to n2 alone, where two VMs are in its way, and a plan may move one of them."""
    snapshot = cluster(
        node("n1", memory="16Gi"),
        vm("a", on="n1", memory="7Gi", node_selector={"takes": "a"}),
        node("n2", memory="16Gi", labels={"takes": "a"}),
        *(vm(f"b{i}", on="n2", memory="5Gi") for i in range(3)),
        node("n3", memory="16Gi"),
    )
    context = PlanningContext(planning=PlanningPolicy(max_moves_per_goal=1))
    turns = list(rolling_turns(["n1", "n2"], view_of(snapshot, context)))
    assert [(turn.node, len(turn.moves)) for turn in turns] == [("n2", 3), ("n1", 2)]
    assert not any(turn.left_behind for turn in turns)


def test_where_it_gets_stuck_is_told_with_what_a_person_can_do() -> None:
    found = roll(
        node("n1", memory="16Gi"),
        vm("tied", on="n1", memory="2Gi", vmi=STUCK),
        node("n2", memory="16Gi"),
        vm("free", on="n2", memory="4Gi"),
    )
    (turn,) = found.stuck
    assert turn.node == "n1"
    (reason,) = turn.left_behind
    assert reason.object == "default/tied"
    assert "mend what KubeVirt names, or stop the VM" in reason.message


def test_a_vm_without_room_anywhere_is_stuck() -> None:
    found = roll(
        node("n1", memory="16Gi"),
        vm("big", on="n1", memory="12Gi"),
        node("n2", memory="16Gi"),
        pod("fixed", on="n2", memory="8Gi"),
    )
    assert [turn.node for turn in found.stuck] == ["n1"]


def test_a_recent_migration_keeps_no_vm_from_its_turn() -> None:
    found = roll(node("n1"), node("n2"), vm("a", on="n1"), migration("m", "a", "Succeeded"))
    assert not any(turn.left_behind for turn in found.turns)


def test_evictions_that_would_hang_are_a_warning_only() -> None:
    selector = LabelSelector((Requirement("app", "In", ("web",)),))
    budget = PodDisruptionBudget("default", "keep", selector, disruptions_allowed=0)
    found = roll(node("n1"), node("n2"), pod("web", on="n1", labels={"app": "web"}), budget)
    assert not found.stuck
    assert {t.node: [w.object for w in t.warnings] for t in found.turns} == {
        "n1": ["default/keep"],
        "n2": [],
    }


def test_a_cordoned_node_takes_nothing_at_any_time() -> None:
    found = roll(node("n1"), node("n2", is_unschedulable=True), vm("a", on="n1"))
    assert [turn.node for turn in found.stuck] == ["n1"]


def test_a_turn_whose_plan_would_break_a_rule_is_stuck_and_says_which(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checker, "violations", lambda *_: ["n2 would be overfilled"])
    (turn,) = roll(node("n1"), vm("a", on="n1"), node("n2")).stuck
    assert (turn.node, turn.moves) == ("n1", ())
    assert [(r.code, r.message) for r in turn.left_behind] == [
        ("plan-rejected", "n2 would be overfilled")
    ]


@settings(max_examples=60)
@given(small_clusters())
def test_every_turn_replays_within_what_nodes_have_and_leaves_its_node_empty(
    snapshot: Snapshot,
) -> None:
    found = roll_over(snapshot)
    assert sorted(turn.node for turn in found.turns) == sorted(n.name for n in snapshot.nodes)
    for turn in found.turns:
        assert violations(snapshot, [], turn.moves) == []
        for step in replayed(snapshot, turn.moves):
            both = replace(step.before, pods=(*step.before.pods, *step.after.pods[-1:]))
            assert (ClusterState(both).headroom("memory") >= 0).all()
            snapshot = step.after
        left = {str(vmi.key) for vmi in snapshot.vmis if vmi.node_name == turn.node}
        assert left == {reason.object for reason in turn.left_behind}
