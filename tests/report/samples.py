"""Plans of every kind, each with the cluster that it is for."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from rebalancer.model.measured_load import MeasuredLoad
from rebalancer.model.plan import (
    MOVES_UNDER_WAY,
    Cost,
    Goal,
    Move,
    Plan,
    Reason,
    Refusal,
    Subject,
    Verdict,
)
from rebalancer.model.snapshot import Snapshot
from tests.builders import NOW, Launched, Thing, cluster, key, node, pending_vm, vm


class Sample(NamedTuple):
    plan: Plan
    snapshot: Snapshot


def goal(verdict: Verdict, *reasons: Reason, vm_name: str = "big", **fields: Any) -> Goal:
    subject = Subject("VirtualMachineInstance", "default", vm_name, f"vmi-{vm_name}")
    return Goal("FitPendingVMs", subject, verdict, reasons, **fields)


def move(launched: Launched, to: str, *after: str) -> Move:
    vmi, pod = launched
    assert vmi.node_name is not None
    return Move(
        id=str(vmi.key),
        vmi=vmi.key,
        vmi_uid=vmi.uid,
        source=vmi.node_name,
        target=to,
        bytes=pod.requests["memory"],
        seconds=pod.requests["memory"] / 2**27,
        cost=Cost({"copy": pod.requests["memory"] / 2**27, "fixed": 10.0}),
        after=after,
    )


def sample(*goals: Goal, on: Snapshot, moves: Sequence[Move] = (), **fields: Any) -> Sample:
    plan = Plan(
        id="0123456789ab",
        goals=goals,
        moves=tuple(moves),
        node_count=len(on.nodes),
        pod_count=len(on.pods),
        vmi_count=len(on.vmis),
        missing=on.missing,
        **fields,
    )
    return Sample(plan, on)


def one_move() -> Sample:
    db = vm("db", on="worker-1", memory="8Gi")
    return sample(
        goal(
            Verdict.PLANNED,
            Reason("makes-room", "one migration makes room", node="worker-1"),
            node="worker-1",
            cost=74.0,
            bound=74.0,
            proven=True,
            move_ids=("default/db",),
        ),
        on=cluster(
            node("worker-1", memory="32Gi"),
            node("worker-2", memory="32Gi"),
            db,
            vm("web", on="worker-1", memory="12Gi"),
            vm("queue", on="worker-2", memory="20Gi"),
            pending_vm("big", "16Gi"),
        ),
        moves=[move(db, "worker-2")],
        estimated_seconds=64.0,
    )


def several_moves() -> Sample:
    """The second move takes the room that the first frees; a cheaper plan is not ruled out."""
    first = vm("cache-0", on="worker-2", memory="6Gi")
    second = vm("database-primary", on="worker-1", memory="12Gi")
    return sample(
        goal(
            Verdict.PLANNED,
            Reason("makes-room", "2 migrations make room", node="worker-1"),
            Reason("not-proven", "a cheaper plan is not ruled out: the deadline of 20 s passed"),
            node="worker-1",
            cost=164.0,
            bound=106.5,
            move_ids=("default/cache-0", "default/database-primary"),
        ),
        on=cluster(
            node("worker-1", memory="16Gi"),
            node("worker-2", memory="16Gi"),
            node("worker-3", memory="8Gi"),
            first,
            second,
            pending_vm("big", "12Gi"),
        ),
        moves=[move(first, "worker-3"), move(second, "worker-2", "default/cache-0")],
        estimated_seconds=144.0,
    )


def detour() -> Sample:
    """b steps aside to where big will land, so that a can leave; then c has room where a was."""
    a = vm("a", on="worker-2", memory="3Gi")
    b = vm("b", on="worker-3", memory="2Gi")
    c = vm("c", on="worker-1", memory="2Gi")
    second = replace(move(b, "worker-2", "default/b", "default/a"), id="default/b#2")
    return sample(
        goal(
            Verdict.PLANNED,
            Reason("makes-room", "4 migrations make room", node="worker-1"),
            node="worker-1",
            cost=112.0,
            bound=112.0,
            proven=True,
            move_ids=("default/b", "default/a", "default/c", "default/b#2"),
        ),
        on=cluster(
            *(node(f"worker-{number}", memory="4Gi") for number in (1, 2, 3)),
            *(a, b, c),
            pending_vm("big", "4Gi"),
        ),
        moves=[
            move(b, "worker-1"),
            move(a, "worker-3", "default/b"),
            move(c, "worker-2", "default/a"),
            replace(second, source="worker-1"),
        ],
        estimated_seconds=56.0,
    )


def several_goals() -> Sample:
    """Two VMs get room at once, a third waits for its turn."""
    a = vm("a", on="worker-1", memory="4Gi")
    b = vm("b", on="worker-2", memory="4Gi")

    def planned(name: str, on: str, move_id: str) -> Goal:
        return goal(
            Verdict.PLANNED,
            vm_name=name,
            node=on,
            cost=42.0,
            bound=42.0,
            proven=True,
            move_ids=(move_id,),
        )

    return sample(
        planned("first", "worker-1", "default/a"),
        planned("second", "worker-2", "default/b"),
        goal(
            Verdict.WAITING,
            Reason("behind-others", "more important VMs come first; it is planned anew after them"),
            vm_name="third",
        ),
        on=cluster(
            node("worker-1", memory="16Gi"),
            node("worker-2", memory="16Gi"),
            node("worker-3", memory="16Gi"),
            a,
            b,
            pending_vm("first", "14Gi"),
            pending_vm("second", "14Gi"),
            pending_vm("third", "14Gi"),
        ),
        moves=[move(a, "worker-3"), move(b, "worker-3")],
        estimated_seconds=32.0,
    )


def _without_moves(verdict: Verdict, *reasons: Reason, **fields: Any) -> Sample:
    refused = fields.pop("refused", ())
    things: list[Thing] = [
        node("worker-1", memory="16Gi"),
        node("worker-2", memory="0"),
        vm("db", on="worker-1", memory="12Gi"),
        pending_vm("big", "17Gi"),
    ]
    return sample(goal(verdict, *reasons, **fields), on=cluster(*things), refused=refused)


def fits() -> Sample:
    message = "has room now; the scheduler can place it"
    return _without_moves(Verdict.FITS, Reason("fits", message, node="worker-1"))


def waiting() -> Sample:
    message = "migration default/rebalancer-db-1 is making room for it"
    return _without_moves(Verdict.WAITING, Reason(MOVES_UNDER_WAY, message))


def not_about_room() -> Sample:
    return _without_moves(
        Verdict.NOT_ABOUT_ROOM,
        Reason("no-eligible-node", "no node would take it, however much room there were"),
        Reason("NodeUnschedulable", "node is cordoned (unschedulable)", node="worker-1"),
        Reason("TaintToleration", "taint gpu:NoSchedule not tolerated", node="worker-2"),
    )


def impossible() -> Sample:
    return _without_moves(
        Verdict.IMPOSSIBLE,
        Reason("too-large", "memory: needs 17408 MiB, the largest eligible node has 16384 MiB"),
        Reason("NodeResourcesFit", "memory: needs 17408 MiB, headroom 4096 MiB", node="worker-1"),
        Reason(
            "freeable",
            "memory: moving away all 1 VMs that may leave would free 12288 MiB, to 16384 MiB",
            node="worker-1",
        ),
        proven=True,
        refused=(
            Refusal(key("db"), "opted-out", "annotation rebalancer/opt-out keeps it where it is"),
            Refusal(key("db", "shop"), "not-running", "its phase is Paused"),
        ),
    )


def unproven() -> Sample:
    message = "no plan was found, and none is ruled out: the deadline of 20 s passed"
    return _without_moves(Verdict.UNPROVEN, Reason("not-proven", message), bound=74.0)


def empty() -> Sample:
    return sample(on=cluster(node("worker-1")))


def from_part_of_a_cluster() -> Sample:
    missing = ("KubeVirt", "PersistentVolume")
    return sample(on=cluster(node("worker-1"), missing=missing))


def without_measured_load() -> Sample:
    load = MeasuredLoad(NOW, "cpu", problem="measuredLoad.nodeQuery: HTTP 401: \x1b[31mwho?")
    snapshot = cluster(node("worker-1"), missing=("MeasuredLoad",))
    return sample(on=replace(snapshot, measured_load=load))


def large_cluster() -> Sample:
    """More nodes than a person reads."""
    names = [f"worker-{number:03}" for number in range(200)]
    message = "memory: needs 16384 MiB, headroom 4096 MiB"
    return sample(
        goal(
            Verdict.IMPOSSIBLE,
            *(Reason("NodeResourcesFit", message, node=name) for name in names),
        ),
        on=cluster(*map(node, names), pending_vm("big", "16Gi")),
        refused=tuple(
            Refusal(key(f"vm-{number}"), "opted-out", "annotation rebalancer/opt-out")
            for number in range(21)
        ),
    )


SAMPLES: dict[str, Callable[[], Sample]] = {
    "one-move": one_move,
    "several-moves": several_moves,
    "detour": detour,
    "several-goals": several_goals,
    "fits": fits,
    "waiting": waiting,
    "not-about-room": not_about_room,
    "impossible": impossible,
    "unproven": unproven,
    "empty": empty,
    "from-part-of-a-cluster": from_part_of_a_cluster,
    "without-measured-load": without_measured_load,
    "large-cluster": large_cluster,
}
