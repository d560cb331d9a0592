"""One plan from all strategies, none of which is trusted."""

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rebalancer.model.objects import Node
from rebalancer.model.plan import Cost, Goal, Move, Plan, Proposal, Reason, Subject, Verdict
from rebalancer.model.snapshot import Snapshot
from rebalancer.planner import ActiveStrategy, make_plan
from rebalancer.planning.context import PlanningContext
from rebalancer.policy.model import Mode, Section
from rebalancer.strategy import Strategy
from rebalancer_strategies.fit_pending_vms import STRATEGY
from rebalancer_strategies.fit_pending_vms.settings import FitPendingVMsSettings
from tests.builders import cluster, key, node, pending_vm, pod, vm

FIT = ActiveStrategy(STRATEGY, Mode.AUTOMATIC, FitPendingVMsSettings())
Propose = Callable[[Snapshot], Sequence[Proposal]]


class Settings(Section):
    margin: int = 0


def active(propose: Propose, name: str = "Mine", mode: Mode = Mode.AUTOMATIC) -> ActiveStrategy:
    strategy = Strategy(name, Settings, lambda view, _: propose(view.snapshot))
    return ActiveStrategy(strategy, mode, Settings())


def plan(snapshot: Snapshot, *strategies: ActiveStrategy) -> Plan:
    return make_plan(snapshot, strategies, PlanningContext())


def one_move_away() -> Snapshot:
    """a may leave n1 for n2 or n3; then p fits on n1."""
    return cluster(
        node("n1", memory="16Gi"),
        node("n2", memory="16Gi"),
        node("n3", memory="8Gi"),
        vm("a", on="n1", memory="4Gi"),
        vm("b", on="n1", memory="5Gi"),
        pod("fixed", on="n2", memory="7Gi"),
        pending_vm("p", "11Gi"),
    )


def move(name: str, target: str, **fields: Any) -> Move:
    """A VM leaves n1."""
    defaults: dict[str, Any] = {
        "id": f"default/{name}",
        "vmi": key(name),
        "vmi_uid": f"vmi-{name}",
        "source": "n1",
        "bytes": 2**32,
        "seconds": 32.0,
        "cost": Cost({"copy": 32.0}),
    }
    return Move(**{**defaults, "target": target, **fields})


def goal(verdict: Verdict = Verdict.PLANNED, **fields: Any) -> Goal:
    subject = Subject("VirtualMachineInstance", "default", "p", "vmi-p")
    defaults: dict[str, Any] = {"strategy": "Mine", "subject": subject, "verdict": verdict}
    if verdict is Verdict.PLANNED:
        defaults |= {"node": "n1", "cost": 32.0, "bound": 32.0, "proven": True}
    return Goal(**{**defaults, **fields})


def b_makes_room() -> Proposal:
    return Proposal(goal(), (move("b", "n2"),))


def test_strategies_are_asked_in_their_order_each_on_what_the_earlier_ones_leave() -> None:
    asked: list[tuple[str, int]] = []

    def stub(name: str, *proposals: Proposal) -> ActiveStrategy:
        def propose(snapshot: Snapshot) -> Sequence[Proposal]:
            asked.append((name, len(snapshot.migrations)))
            return proposals

        return active(propose, name)

    made = plan(one_move_away(), stub("Second"), stub("First", b_makes_room()), stub("Third"))
    assert asked == [("Second", 0), ("First", 0), ("Third", 1)]
    assert [(goal.strategy, goal.verdict) for goal in made.goals] == [("First", Verdict.PLANNED)]


def test_strategy_that_is_off_is_not_asked() -> None:
    def never(_: Snapshot) -> Sequence[Proposal]:
        pytest.fail("a strategy that is off was asked")

    assert plan(one_move_away(), active(never, mode=Mode.OFF)).goals == ()


def test_strategy_that_recommends_plans_as_one_that_acts() -> None:
    recommending = FIT._replace(mode=Mode.RECOMMEND)
    assert plan(one_move_away(), recommending) == plan(one_move_away(), FIT)


def test_sound_proposal_is_taken_as_it_is() -> None:
    made = plan(one_move_away(), active(lambda _: [b_makes_room()]))
    [accepted] = made.goals
    assert accepted == replace(goal(), move_ids=("default/b",))
    assert made.moves == b_makes_room().moves


BROKEN = {
    "not-on-its-source": (
        Proposal(goal(), (move("a", "n3", source="n2"),)),
        "default/a does not run on n2",
    ),
    "unknown-target": (
        Proposal(goal(), (move("a", "gone"),)),
        "default/a cannot go from n1 to gone",
    ),
    "goal-not-reached": (
        Proposal(goal(node="n2"), (move("a", "n3"),)),
        "default/p would still not fit on n2",
    ),
    "waits-for-nothing": (
        Proposal(goal(), (move("a", "n3", after=("default/x",)),)),
        "waits for default/x",
    ),
    "moves-without-a-plan": (
        Proposal(goal(Verdict.WAITING), (move("a", "n3"),)),
        "a goal that is waiting cannot have moves",
    ),
}


@pytest.mark.parametrize(("proposal", "says"), BROKEN.values(), ids=BROKEN.keys())
def test_proposal_that_breaks_a_rule_loses_its_moves_and_says_why(
    proposal: Proposal, says: str
) -> None:
    made = plan(one_move_away(), active(lambda _: [proposal]))
    [rejected] = made.goals
    assert (made.moves, rejected.move_ids) == ((), ())
    assert (rejected.verdict, rejected.node, rejected.cost) == (Verdict.UNPROVEN, "", None)
    assert not rejected.proven
    assert {reason.code for reason in rejected.reasons} == {"plan-rejected"}
    assert says in "; ".join(reason.message for reason in rejected.reasons)


def test_moves_that_would_break_a_rule_only_where_they_overlap_are_made_in_turn() -> None:
    """n3 has room for b once a has left it again."""
    moves = (
        move("a", "n3"),
        move("a", "n2", id="default/a#2", source="n3", after=("default/a",)),
        move("b", "n3"),
    )
    made = plan(one_move_away(), active(lambda _: [Proposal(goal(), moves)]))
    assert [m.after for m in made.moves] == [(), ("default/a",), ("default/a#2",)]


def test_later_strategies_plan_as_if_a_rejected_proposal_had_not_been_made() -> None:
    broken, _ = BROKEN["goal-not-reached"]
    made = plan(one_move_away(), active(lambda _: [broken]), FIT)
    assert [goal.verdict for goal in made.goals] == [Verdict.UNPROVEN, Verdict.PLANNED]
    assert [move.id for move in made.moves] == list(made.goals[1].move_ids)


def test_vm_that_an_earlier_strategy_moves_is_not_moved_again() -> None:
    again = Proposal(goal(), b_makes_room().moves)
    made = plan(
        one_move_away(), active(lambda _: [b_makes_room()]), active(lambda _: [again], "Other")
    )
    assert [goal.verdict for goal in made.goals] == [Verdict.PLANNED, Verdict.UNPROVEN]
    assert len(made.moves) == 1


def test_goal_bears_the_name_of_its_strategy_and_its_own_moves_whatever_it_says() -> None:
    lying = replace(
        b_makes_room(), goal=goal(strategy="FitPendingVMs", move_ids=("default/other",))
    )
    [signed] = plan(one_move_away(), active(lambda _: [lying])).goals
    assert (signed.strategy, signed.move_ids) == ("Mine", ("default/b",))


def test_plan_tells_what_it_was_made_from() -> None:
    snapshot = replace(one_move_away(), missing=("KubeVirt",))
    made = plan(snapshot)
    assert (made.node_count, made.pod_count, made.vmi_count) == (3, 4, 3)
    assert made.missing == ("KubeVirt",)


def test_equal_clusters_give_equal_plans_with_equal_ids() -> None:
    assert plan(one_move_away(), FIT) == plan(one_move_away(), FIT)


def test_id_does_not_depend_on_how_reasons_are_worded() -> None:
    def said(message: str) -> str:
        reasons = (Reason("grace", message),)
        proposal = Proposal(goal(Verdict.WAITING, reasons=reasons))
        return plan(one_move_away(), active(lambda _: [proposal])).id

    assert said("looked at from 12:00:15") == said("looked at from 12:00:30")


def test_every_difference_in_what_is_planned_gives_another_id() -> None:
    subject = goal().subject
    proposals = [
        (),
        (b_makes_room(),),
        (Proposal(goal(), (move("b", "n3"),)),),
        (Proposal(goal(Verdict.FITS)),),
        (Proposal(goal(Verdict.WAITING)),),
        (Proposal(goal(Verdict.WAITING, subject=replace(subject, uid="another"))),),
        (Proposal(goal(Verdict.WAITING, subject=replace(subject, kind="Node"))),),
        (Proposal(goal(Verdict.WAITING, subject=replace(subject, name="q"))),),
        (Proposal(goal(Verdict.FITS)), Proposal(goal(Verdict.WAITING))),
        (Proposal(goal(Verdict.WAITING)), Proposal(goal(Verdict.FITS))),
    ]
    ids = [plan(one_move_away(), active(lambda _, p=p: p)).id for p in proposals]  # type: ignore[misc]
    ids.append(plan(one_move_away(), active(lambda _: proposals[3], "Other")).id)
    assert len(set(ids)) == len(proposals) + 1


def test_id_is_twelve_hexadecimal_digits() -> None:
    made = plan(one_move_away(), FIT)
    assert len(made.id) == 12
    int(made.id, 16)


@pytest.mark.parametrize("nodes", list(permutations(one_move_away().nodes)))
def test_order_of_the_nodes_changes_nothing(nodes: tuple[Node, ...]) -> None:
    assert plan(replace(one_move_away(), nodes=nodes), FIT) == plan(one_move_away(), FIT)


@settings(max_examples=20)
@given(st.randoms(use_true_random=False))
def test_order_of_all_objects_changes_nothing(random: Any) -> None:
    snapshot = one_move_away()

    def shuffled(objects: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(random.sample(objects, len(objects)))

    mixed = replace(
        snapshot,
        nodes=shuffled(snapshot.nodes),
        pods=shuffled(snapshot.pods),
        vmis=shuffled(snapshot.vmis),
    )
    assert plan(mixed, FIT) == plan(snapshot, FIT)
