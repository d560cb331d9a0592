"""Moves carried out on a snapshot, one after another."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from rebalancer.model.objects import Amounts, Pod, VirtualMachineInstance
from rebalancer.model.plan import Move
from rebalancer.model.snapshot import Snapshot
from rebalancer.scheduling.target_pod import off_its_launchers, released_requests, target_pod


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
    for move in moves:
        vmi = snapshot.vmi_by_key[move.vmi]
        leaving = snapshot.launchers_by_vmi[vmi.uid][0]
        arriving = replace(target_pod(vmi, leaving, snapshot), uid=f"arriving-{move.id}")
        placed = _placed(arriving, move, vmi)
        staying = (p for p in snapshot.pods if leaving.uid not in {p.uid, p.attached_to})
        after = replace(
            snapshot,
            pods=(*staying, placed),
            vmis=tuple(
                replace(v, node_name=move.target) if v.uid == vmi.uid else v for v in snapshot.vmis
            ),
        )
        released = released_requests(leaving, snapshot)
        yield Step(move, snapshot, arriving, placed, released, after)
        snapshot = after


def carried_out(snapshot: Snapshot, moves: Sequence[Move]) -> Snapshot:
    """When all the moves are done, in this order."""
    for step in replayed(snapshot, moves):
        snapshot = step.after
    return snapshot


def _placed(arriving: Pod, move: Move, vmi: VirtualMachineInstance) -> Pod:
    """What keeps it off the VM's other launchers has done its work, and would make each VM that
    has moved a class of its own for the planner.
    """
    off_others = tuple(t for t in arriving.pod_anti_affinity if t != off_its_launchers(vmi))
    return replace(arriving, node_name=move.target, phase="Running", pod_anti_affinity=off_others)
