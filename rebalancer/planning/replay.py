"""Moves carried out on a snapshot, one after another."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from rebalancer.model.objects import Amounts, Pod
from rebalancer.model.plan import Move
from rebalancer.model.snapshot import Snapshot
from rebalancer.scheduling.target_pod import released_requests, target_pod


class Step(NamedTuple):
    """One move when all before it are done."""

    move: Move
    before: Snapshot
    arriving: Pod
    """The target pod before it has its node."""
    released: Amounts
    """What the source gets back."""
    after: Snapshot


def replayed(snapshot: Snapshot, moves: Sequence[Move]) -> Iterator[Step]:
    """Pods that bring hot-plugged volumes go with the VM; the arriving pod counts for them."""
    for move in moves:
        vmi = snapshot.vmi_by_key[move.vmi]
        leaving = snapshot.launchers_by_vmi[vmi.uid][0]
        arriving = replace(target_pod(vmi, leaving, snapshot), uid=f"arriving-{move.id}")
        staying = (p for p in snapshot.pods if leaving.uid not in {p.uid, p.attached_to})
        after = replace(
            snapshot,
            pods=(*staying, placed(arriving, move)),
            vmis=tuple(
                replace(v, node_name=move.target) if v.uid == vmi.uid else v for v in snapshot.vmis
            ),
        )
        yield Step(move, snapshot, arriving, released_requests(leaving, snapshot), after)
        snapshot = after


def carried_out(snapshot: Snapshot, moves: Sequence[Move]) -> Snapshot:
    """When all the moves are done, in this order."""
    for step in replayed(snapshot, moves):
        snapshot = step.after
    return snapshot


def placed(arriving: Pod, move: Move) -> Pod:
    """The target pod on its node."""
    return replace(arriving, node_name=move.target, phase="Running")
