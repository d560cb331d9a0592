"""Moves carried out on a snapshot, one after another."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from rebalancer.model.objects import Amounts, Pod
from rebalancer.model.plan import Move
from rebalancer.model.snapshot import Snapshot
from rebalancer.scheduling.own_launchers import off_others
from rebalancer.scheduling.target_pod import released_requests, target_pod


class Arrival(NamedTuple):
    """One move, and the pods that it is about."""

    move: Move
    leaving: Pod
    arriving: Pod
    """The target pod before it has its node."""
    placed: Pod
    """And on it."""


class Step(NamedTuple):
    """One move when all before it are done."""

    move: Move
    before: Snapshot
    arriving: Pod
    """The target pod before it has its node."""
    placed: Pod
    """And on it."""
    released: Amounts
    """What the source gets back."""
    after: Snapshot


def replayed(snapshot: Snapshot, moves: Sequence[Move]) -> Iterator[Step]:
    """Pods that bring hot-plugged volumes go with the VM; the arriving pod counts for them."""
    before = snapshot
    for move, leaving, arriving, placed in arrivals(snapshot, moves):
        after = _with(before, {leaving.uid}, {move.vmi_uid: placed})
        released = released_requests(leaving, snapshot)
        yield Step(move, before, arriving, placed, released, after)
        before = after


def carried_out(snapshot: Snapshot, moves: Sequence[Move]) -> Snapshot:
    """When all the moves are done, in this order."""
    arrived: dict[str, Pod] = {}
    for move, _, _, placed in arrivals(snapshot, moves):
        arrived.pop(move.vmi_uid, None)
        arrived[move.vmi_uid] = placed
    left = {snapshot.launchers_by_vmi[uid][0].uid for uid in arrived}
    return _with(snapshot, left, arrived)


def arrivals(snapshot: Snapshot, moves: Sequence[Move]) -> Iterator[Arrival]:
    """Each move's pods, when all before it are done."""
    arrived: dict[str, Pod] = {}
    for move in moves:
        vmi = snapshot.vmi_by_key[move.vmi]
        leaving = arrived.get(vmi.uid) or snapshot.launchers_by_vmi[vmi.uid][0]
        arriving = replace(target_pod(vmi, leaving, snapshot), uid=f"arriving-{move.id}")
        # What keeps it off the VM's other launchers has done its work.
        placed = replace(
            arriving,
            node_name=move.target,
            phase="Running",
            pod_anti_affinity=off_others(arriving),
        )
        arrived[vmi.uid] = placed
        yield Arrival(move, leaving, arriving, placed)


def _with(snapshot: Snapshot, left: Collection[str], arrived: Mapping[str, Pod]) -> Snapshot:
    """`left`: uids of pods that have gone; `arrived`: VMI uid to the pod that it runs in now."""
    return replace(
        snapshot,
        pods=(
            *(p for p in snapshot.pods if p.uid not in left and p.attached_to not in left),
            *arrived.values(),
        ),
        vmis=tuple(
            replace(v, node_name=arrived[v.uid].node_name) if v.uid in arrived else v
            for v in snapshot.vmis
        ),
    )
