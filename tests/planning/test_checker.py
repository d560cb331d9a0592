"""The checker refuses what would break a rule, whoever planned it."""

import pytest
from msgspec.structs import replace

from rebalancer.model.objects import LabelSelector, PodAffinityTerm, Requirement
from rebalancer.model.plan import Cost, Goal, Move, Subject, Verdict
from rebalancer.planning.checker import violations
from tests.builders import cluster, key, node, pending_vm, pod, vm

SUBJECT = Subject("VirtualMachineInstance", "default", "p", "vmi-p")


def move(name: str, source: str, target: str, after: tuple[str, ...] = ()) -> Move:
    return Move(name, key(name), f"vmi-{name}", source, target, 1, 1.0, Cost({}), after)


def again(second: Move) -> Move:
    return replace(second, id=f"{second.id}#2")


def goal(on: str, *move_ids: str) -> Goal:
    return Goal("FitPendingVMs", SUBJECT, Verdict.PLANNED, node=on, move_ids=move_ids)


SNAPSHOT = cluster(
    node("n1", memory="16Gi"),
    node("n2", memory="16Gi"),
    node("n3", memory="8Gi", is_unschedulable=True),
    vm("a", on="n1", memory="8Gi"),
    vm("b", on="n2", memory="6Gi"),
    vm("c", on="n2", memory="4Gi"),
    pending_vm("p", "12Gi"),
)


def test_a_sound_plan_has_no_violations() -> None:
    # c makes room for a on n2, then a leaves n1 to p.
    moves = [move("c", "n2", "n1"), move("a", "n1", "n2", after=("c",))]
    snapshot = cluster(*SNAPSHOT.nodes, *SNAPSHOT.pods, *SNAPSHOT.vmis)
    assert violations(snapshot, [goal("n1", "c", "a")], moves) == []


def test_a_move_that_does_not_wait_for_its_room_overfills_the_target() -> None:
    moves = [move("c", "n2", "n1"), move("a", "n1", "n2")]
    assert any("n2 would be overfilled" in text for text in violations(SNAPSHOT, [], moves))


def test_a_cordoned_target_is_named() -> None:
    (problem,) = violations(SNAPSHOT, [], [move("c", "n2", "n3")])
    assert problem == "default/c would not be let onto n3: node is cordoned (unschedulable)"


def test_a_goal_that_would_still_not_fit_is_named_in_numbers() -> None:
    (problem,) = violations(SNAPSHOT, [goal("n2", "c")], [move("c", "n2", "n1")])
    assert "default/p would still not fit on n2: memory: needs" in problem


def test_a_vm_is_moved_from_where_it_is() -> None:
    moves = [
        move("a", "n2", "n1"),
        move("b", "n2", "n1"),
        again(move("b", "n2", "n1", after=("b",))),
        move("c", "n2", "n1"),
        again(move("c", "n1", "n2")),
    ]
    assert violations(SNAPSHOT, [], moves) == [
        "default/a does not run on n2 with one launcher pod",
        "default/b is moved twice, to n1 and then from n2",
        "default/c goes on from n1 without waiting until it is there",
    ]


def test_no_two_moves_have_one_id() -> None:
    problems = violations(SNAPSHOT, [], [move("b", "n2", "n1"), move("b", "n1", "n2", ("b",))])
    assert problems == ["two moves have the id b"]


def test_a_node_held_for_one_goal_takes_no_move_of_another() -> None:
    snapshot = cluster(
        *SNAPSHOT.nodes, *SNAPSHOT.pods, *SNAPSHOT.vmis, pod("extra", on="n3", memory="1Gi")
    )
    problems = violations(snapshot, [goal("n1")], [move("c", "n2", "n1")])
    assert "default/c would go to n1, which is held for default/p" in problems


def no_neighbour(role: str) -> PodAffinityTerm:
    return PodAffinityTerm(
        topology_key="kubernetes.io/hostname",
        selector=LabelSelector((Requirement("role", "In", (role,)),)),
        namespaces=("default",),
    )


STRANGERS = cluster(
    *(node(name, memory="16Gi") for name in ("n1", "n2", "n3")),
    vm("a", on="n1", memory="2Gi", labels={"role": "a"}),
    vm("b", on="n2", memory="2Gi", pod_anti_affinity=(no_neighbour("a"),)),
)


def test_a_move_that_another_vms_rules_may_bar_must_wait_until_that_one_has_left() -> None:
    b, a = move("b", "n2", "n3"), move("a", "n1", "n2")
    (problem,) = violations(STRANGERS, [], [b, a])
    assert problem.startswith("default/a would not be let onto n2: ")
    assert violations(STRANGERS, [], [b, replace(a, after=("b",))]) == []


def test_two_moves_that_are_let_in_one_by_one_may_bar_each_other_while_under_way() -> None:
    """b goes on from n3 before a comes, but could still be there."""
    b, a = move("b", "n2", "n3"), move("a", "n1", "n3")
    on = again(move("b", "n3", "n1", after=("b",)))
    assert any("onto n3" in problem for problem in violations(STRANGERS, [], [b, on, a]))


def test_a_detour_is_replayed_from_where_the_move_before_has_ended() -> None:
    moves = [move("c", "n2", "n1"), again(move("c", "n1", "n2", after=("c",)))]
    assert violations(SNAPSHOT, [], moves) == []


@pytest.mark.parametrize("movers", [3, 40])
def test_overfilling_is_found_however_many_moves_there_are(movers: int) -> None:
    """Each waits for one that leaves, but all may wait for the same one."""
    leaving = [vm(f"out{i}", on="n2", memory="1Gi") for i in range(movers)]
    arriving = [vm(f"in{i}", on="n1", memory="1Gi") for i in range(movers)]
    size = f"{movers}Gi"
    snapshot = cluster(*(node(n, memory=size) for n in ("n1", "n2", "n3")), *leaving, *arriving)
    out = [move(f"out{i}", "n2", "n3") for i in range(movers)]

    def into(i: int, waits_for: int) -> Move:
        return move(f"in{i}", "n1", "n2", after=(f"out{waits_for}",))

    each_its_own = [into(i, i) for i in range(movers)]
    assert violations(snapshot, [], [*out, *each_its_own]) == []
    all_the_same = [*each_its_own[:-1], into(movers - 1, 0)]
    (problem,) = violations(snapshot, [], [*out, *all_the_same])
    assert problem.startswith("n2 would be overfilled: memory ")
