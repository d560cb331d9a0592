"""Public reports about evening out load, and about not making things worse.

A case is named after its place in our list and the report that it comes from.
"""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from rebalancer.model import keys
from rebalancer.model.measured_load import MeasuredLoad, Reading
from rebalancer.model.plan import Plan, Verdict
from rebalancer.model.snapshot import Snapshot
from rebalancer.planner import make_plan
from rebalancer.planning.context import PlanningContext
from rebalancer.planning.replay import carried_out
from rebalancer.scheduling.state import ClusterState
from rebalancer_strategies.spread_headroom import STRATEGY
from tests.builders import NOW, Launched, Thing, cluster, key, migrating, migration, node, pod, vm
from tests.strategies.decisions import automatic

ONLY_BALANCE = {"headroom": {"failureDomain": "None"}}
ONLY_HEADROOM = {"balance": {"by": "None"}}


def spread_plan(snapshot: Snapshot, **settings: object) -> Plan:
    return make_plan(snapshot, [automatic(STRATEGY, **settings)], PlanningContext())


def balanced(snapshot: Snapshot, **settings: object) -> Plan:
    """By requested memory, above half, with whatever gain."""
    balance = {"resources": ["memory"], "onlyAbove": 0.5, **settings}
    return spread_plan(snapshot, **ONLY_BALANCE, balance=balance)


def filled(name: str, gib: int, *, size: int = 8, of: int = 100) -> tuple[Thing, ...]:
    """A node of so many GiB with VMs of one size, and a pod that is no VM for the rest."""
    vms = [vm(f"{name}-{i}", on=name, memory=f"{size}Gi") for i in range(gib // size)]
    rest = gib % size
    others = [pod(f"rest-{name}", on=name, memory=f"{rest}Gi")] if rest else []
    return (node(name, memory=f"{of}Gi", cpu="64"), *vms, *others)


def test_r35_proxlb_128_small_differences_move_nothing() -> None:
    plan = balanced(cluster(filled("n1", 74), filled("n2", 72), filled("n3", 70)))
    assert not plan.moves
    assert plan.goals[0].verdict is Verdict.MET


@pytest.mark.parametrize(
    "loads",
    [(74, 70, 10), (82, 62, 40), (79, 62, 20), (96, 8, 8)],
    ids=["ProxLB#128", "ProxLB#390", "ProxLB#378", "descheduler#424-nearly-empty-ones"],
)
def test_r35_a_second_round_on_the_first_ones_result_does_nothing(loads: tuple[int, ...]) -> None:
    things = [filled(f"n{i}", gib) for i, gib in enumerate(loads, start=1)]
    snapshot = cluster(*things)
    for _ in range(10):
        plan = balanced(snapshot, maxMoves=50)
        if not plan.moves:
            break
        snapshot = moved(snapshot, plan)
    again = balanced(snapshot, maxMoves=50)
    assert not again.moves
    first = balanced(cluster(*things), maxMoves=50)
    assert first.moves
    assert not balanced(moved(cluster(*things), first), maxMoves=50).moves


def moved(snapshot: Snapshot, plan: Plan) -> Snapshot:
    return carried_out(snapshot, plan.moves)


def test_r36_proxlb_378_no_target_is_overfilled() -> None:
    used = {"p1": 36, "p2": 30, "p3": 12, "p4": 46, "p5": 26}
    snapshot = cluster(
        *(node(name, memory="58750M") for name in used),
        *(pod(f"fixed-{name}", on=name, memory=f"{gb}G") for name, gb in used.items()),
        vm("big", on="p5", memory="24G"),
    )
    plan = balanced(snapshot)
    assert {move.target for move in plan.moves} <= {"p3", "p2"}
    after = ClusterState(moved(snapshot, plan))
    assert (after.headroom("memory") >= 0).all()


def by_requests(**requests: tuple[int, int]) -> Snapshot:
    """harvester#10547: nodes of 48, 24 and 24 CPUs; VMs ask for a sixteenth of their cores."""
    cpus = {"a": 48, "b": 24, "c": 24}
    things: list[Thing] = []
    for name, (cpu, memory) in requests.items():
        things.append(node(name, memory="100Gi", cpu=str(cpus[name])))
        millicores = cpus[name] * 10 * cpu // 4
        things += [
            vm(f"{name}{i}", on=name, memory=f"{memory * 256}Mi", cpu=f"{millicores}m")
            for i in range(4)
        ]
    return cluster(*things)


def test_r37_harvester_10547_requests_are_named_and_calm() -> None:
    snapshot = by_requests(a=(26, 31), b=(31, 28), c=(34, 43))
    plan = spread_plan(snapshot, **ONLY_BALANCE, balance={"onlyAbove": 0.5})
    assert not plan.moves
    assert [goal.subject.name for goal in plan.goals] == ["requests"]
    assert "requested cpu or memory" in plan.goals[0].reasons[0].message


def test_r37_descheduler_118_without_samples_nothing_is_evened_out() -> None:
    snapshot = by_requests(a=(26, 31), b=(31, 28), c=(34, 43))
    plan = spread_plan(snapshot, **ONLY_BALANCE, balance={"by": "MeasuredLoad"})
    assert not plan.moves
    assert [(goal.subject.name, goal.verdict) for goal in plan.goals] == [
        ("measured load", Verdict.UNPROVEN)
    ]


def by_load(*busy: float, v_uses: int | None = 8000, waiting: float = 0) -> Plan:
    """n1 has had these readings, a minute apart; n2 is idle, n3 is not measured."""
    snapshot = cluster(
        node("n1", memory="32Gi"),
        node("n2", memory="32Gi"),
        node("n3", memory="32Gi"),
        vm("v", on="n1", memory="4Gi"),
        vm("w", on="n1", memory="4Gi"),
    )
    minutes = [NOW - timedelta(minutes=i) for i in range(len(busy))]
    readings = {
        "n1": tuple(Reading(at, share) for at, share in zip(minutes, busy, strict=True))[::-1],
        "n2": tuple(Reading(at, 0.1) for at in minutes)[::-1],
    }
    usage = {} if v_uses is None else {key("v"): v_uses, key("w"): 4000}
    pressure = {"n1": tuple(Reading(at, waiting) for at in minutes[::-1])}
    load = MeasuredLoad(NOW, "cpu", readings, pressure, usage=usage)
    return spread_plan(
        replace(snapshot, measured_load=load), **ONLY_BALANCE, balance={"by": "MeasuredLoad"}
    )


def test_r37_harvester_10547_a_node_that_is_hot_for_long_is_relieved() -> None:
    plan = by_load(0.9, 0.9, 0.95, 0.9, 0.9, 0.9)
    assert [move.target for move in plan.moves] == ["n2"]
    assert "measured cpu" in plan.goals[0].reasons[0].message


@pytest.mark.parametrize(
    "busy",
    [(0.95, 0.2, 0.9, 0.9, 0.9, 0.9), (0.2, 0.9, 0.9, 0.9, 0.9, 0.9), (0.9, 0.9)],
    ids=["one-dip", "cool-again", "few-readings"],
)
def test_r37_descheduler_1656_a_peak_moves_nothing(busy: tuple[float, ...]) -> None:
    assert not by_load(*busy).moves


def test_r37_a_node_whose_tasks_wait_is_relieved_though_it_is_not_that_busy() -> None:
    calm = by_load(*[0.6] * 6)
    assert not calm.moves
    plan = by_load(*[0.6] * 6, waiting=0.25)
    assert [move.target for move in plan.moves] == ["n2"]
    reasons = {reason.code: reason.message for reason in plan.goals[0].reasons}
    assert reasons["under-pressure"] == "tasks wait for cpu 25% to 25% of the time"


def test_r37_a_vm_that_was_not_measured_stays() -> None:
    assert not by_load(0.9, 0.9, 0.9, 0.9, 0.9, 0.9, v_uses=None).moves


def lopsided(*vms: Launched, **n2: Any) -> Snapshot:
    return cluster(
        node("n1", memory="32Gi"),
        node("n2", memory="32Gi", **n2),
        *vms,
        pod("fixed", on="n1", memory="16Gi"),
    )


STAYS = {
    "R34-kubevirt#9300-paused": vm("v", on="n1", memory="8Gi", vmi={"is_paused": True}),
    "R38-openshift-docs#98815-prefers-no-eviction": vm(
        "v", on="n1", memory="8Gi", vmi={"annotations": {keys.PREFER_NO_EVICTION: ""}}
    ),
    "R38-community#258-opted-out": vm(
        "v", on="n1", memory="8Gi", vmi={"annotations": {keys.OPT_OUT: "true"}}
    ),
}


@pytest.mark.parametrize("v", STAYS.values(), ids=STAYS.keys())
def test_a_vm_that_is_to_stay_is_not_moved_for_balance(v: Launched) -> None:
    assert balanced(lopsided(vm("v", on="n1", memory="8Gi"))).moves
    assert not balanced(lopsided(v)).moves


def test_r27_a_cordoned_node_is_no_target_for_balance() -> None:
    assert not balanced(lopsided(vm("v", on="n1", memory="8Gi"), is_unschedulable=True)).moves


def test_r35_a_vm_is_not_sent_back_where_it_just_was() -> None:
    back = migration(
        "m",
        "v",
        "Succeeded",
        source_node_name="n2",
        phase_times=(("Succeeded", NOW - timedelta(seconds=1800)),),
    )
    snapshot = cluster(
        node("n1", memory="32Gi"),
        node("n2", memory="32Gi"),
        vm("v", on="n1", memory="8Gi"),
        pod("fixed", on="n1", memory="16Gi"),
        back,
    )
    assert not balanced(snapshot).moves
    assert balanced(snapshot, noReturnSeconds=600).moves


def two_and_one(*, s_on: str, big: str = "12Gi") -> Snapshot:
    """If n1 is lost, its VM fits on n2 only once s is not there."""
    return cluster(
        node("n1", memory="16Gi"),
        node("n2", memory="16Gi"),
        node("n3", memory="8Gi"),
        vm("big", on="n1", memory=big),
        vm("s", on=s_on, memory="6Gi"),
    )


def test_r40_kubevirt_6682_what_a_loss_would_leave_down_gets_room() -> None:
    plan = spread_plan(two_and_one(s_on="n2"), **ONLY_HEADROOM)
    verdicts = {goal.subject.name: goal.verdict for goal in plan.goals}
    assert verdicts["n1"] is Verdict.PLANNED
    assert [(move.vmi.name, move.target) for move in plan.moves] == [("s", "n3")]
    after = spread_plan(moved(two_and_one(s_on="n2"), plan), **ONLY_HEADROOM)
    assert [(goal.subject.name, goal.verdict) for goal in after.goals] == [
        ("any node", Verdict.MET)
    ]


def test_what_no_migration_can_mend_is_told_in_numbers() -> None:
    full = cluster(
        node("n1", memory="16Gi"),
        node("n2", memory="16Gi"),
        vm("big", on="n1", memory="12Gi"),
        pod("fixed", on="n2", memory="8Gi"),
    )
    [_, loss] = spread_plan(full, **ONLY_HEADROOM).goals
    assert loss.verdict is Verdict.IMPOSSIBLE
    assert "if n1 is lost, 1 of 1 VMs have no place: default/big" in loss.reasons[0].message


def test_the_largest_vm_that_could_start_now_is_told() -> None:
    snapshot = cluster(
        node("n1", memory="16Gi"), node("n2", memory="32Gi"), vm("a", on="n2", memory="4Gi")
    )
    goal = spread_plan(snapshot, **ONLY_HEADROOM).goals[0]
    assert goal.figures["largestVmMemoryBytes"] == 28 * 2**30
    assert [reason.node for reason in goal.reasons if reason.code == "largest-vm"] == ["n2"]


def sized(count: int, **size: object) -> dict[str, object]:
    sizes = [{"name": "large", "memory": "10Gi", "count": count, **size}]
    return {"headroom": {"failureDomain": "None", "sizes": sizes}, **ONLY_HEADROOM}


def scattered() -> Snapshot:
    return cluster(
        *(node(f"n{i}", memory="16Gi") for i in range(1, 4)),
        *(vm(f"v{i}", on=f"n{i}", memory="7Gi") for i in range(1, 4)),
    )


def test_a_size_that_fits_nowhere_gets_room_by_one_migration() -> None:
    plan = spread_plan(scattered(), **sized(1))
    [goal] = plan.goals
    assert (goal.subject.name, goal.verdict, goal.proven) == ("large", Verdict.PLANNED, True)
    assert len(plan.moves) == 1
    [after] = spread_plan(moved(scattered(), plan), **sized(1)).goals
    assert (after.verdict, after.figures["fits"]) == (Verdict.MET, 1.0)


def test_a_size_of_which_more_are_asked_for_than_can_be_is_told() -> None:
    [goal] = spread_plan(scattered(), **sized(3)).goals
    assert goal.verdict in {Verdict.UNPROVEN, Verdict.IMPOSSIBLE}
    assert "0 fit now; headroom.sizes asks for 3" in goal.reasons[0].message


@pytest.mark.parametrize(
    "ended",
    [{"vmi": {"phase": "Succeeded"}, "phase": "Succeeded"}, {"vmi": {"is_terminating": True}}],
    ids=["finished", "being-deleted"],
)
def test_a_loss_makes_no_room_for_a_vm_that_has_ended(ended: dict[str, Any]) -> None:
    snapshot = cluster(
        node("n1", memory="32Gi"),
        vm("big", on="n1", memory="20Gi"),
        vm("over", on="n1", memory="60Gi", **ended),
        *(
            (node(name, memory="32Gi"), vm(f"small-{name}", on=name, memory="14Gi"))
            for name in ("n2", "n3")
        ),
    )
    plan = spread_plan(snapshot, **ONLY_HEADROOM)
    [_, loss] = plan.goals
    assert loss.subject.name == "n1"
    assert loss.verdict is Verdict.PLANNED
    assert len(plan.moves) == 1


def test_balance_never_takes_the_headroom_of_a_size() -> None:
    """Evening out would fill the hole that the size needs."""
    things: tuple[Thing, ...] = (
        node("n1", memory="32Gi"),
        node("n2", memory="16Gi"),
        *(vm(f"v{i}", on="n1", memory="7Gi") for i in range(4)),
    )
    balance = {"resources": ["memory"], "onlyAbove": 0.5}
    sizes = [{"name": "large", "memory": "12Gi"}]
    headroom = {"failureDomain": "None", "sizes": sizes}
    assert spread_plan(cluster(*things), **ONLY_BALANCE, balance=balance).moves
    assert not spread_plan(cluster(*things), headroom=headroom, balance=balance).moves


def test_balance_goes_on_behind_a_migration_that_would_take_headroom() -> None:
    """The hotter pool could only move onto the hole that the size needs; the other pool may."""
    things = [
        (
            node(f"{pool}1", memory="100Gi", labels={"pool": pool}),
            node(f"{pool}2", memory="100Gi", labels={"pool": pool}),
            pod(f"fixed-{pool}", on=f"{pool}1", memory=f"{fixed}Gi"),
            vm(f"vm-{pool}", on=f"{pool}1", memory="20Gi", node_selector={"pool": pool}),
        )
        for pool, fixed in (("hot", 75), ("warm", 60))
    ]
    sizes = [{"name": "large", "memory": "90Gi", "nodeSelector": {"pool": "hot"}}]
    plan = spread_plan(
        cluster(*things),
        headroom={"failureDomain": "None", "sizes": sizes},
        balance={"resources": ["memory"], "onlyAbove": 0.5},
    )
    assert [(move.vmi.name, move.target) for move in plan.moves] == [("vm-warm", "warm2")]
    free = balanced(cluster(*things))
    assert [move.vmi.name for move in free.moves] == ["vm-hot", "vm-warm"]


def test_nothing_is_judged_while_vms_are_on_their_way() -> None:
    things = (*migrating(vm("m", on="n1", memory="1Gi"), to="n2"),)
    snapshot = cluster(
        node("n1", memory="32Gi"),
        node("n2", memory="32Gi"),
        vm("v", on="n1", memory="8Gi"),
        pod("fixed", on="n1", memory="16Gi"),
        things,
    )
    plan = balanced(snapshot)
    assert not plan.moves
    assert plan.goals[0].verdict is Verdict.WAITING


def test_vms_that_can_run_on_one_node_only_are_counted_apart() -> None:
    snapshot = cluster(
        node("n1", memory="16Gi"),
        node("n2", memory="16Gi"),
        vm("tied", on="n1", memory="1Gi", node_selector={keys.HOSTNAME: "n1"}),
    )
    [goal] = spread_plan(snapshot, **ONLY_HEADROOM).goals
    assert goal.verdict is Verdict.MET
    assert "1 VMs could start again on no other node" in goal.reasons[-1].message
