"""Moves carried out on a snapshot, one after another."""

from collections.abc import Collection, Iterator, Mapping, Sequence
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
    before = snapshot
    arrived: dict[str, Pod] = {}
    for move in moves:
        vmi = snapshot.vmi_by_key[move.vmi]
        leaving = arrived.get(vmi.uid) or snapshot.launchers_by_vmi[vmi.uid][0]
        arriving = _arriving(vmi, leaving, move, snapshot)
        arrived[vmi.uid] = placed = _placed(arriving, move, vmi)
        after = _with(before, {leaving.uid}, {vmi.uid: placed})
        released = released_requests(leaving, snapshot)
        yield Step(move, before, arriving, placed, released, after)
        before = after


def carried_out(snapshot: Snapshot, moves: Sequence[Move]) -> Snapshot:
    """When all the moves are done, in this order."""
    arrived: dict[str, Pod] = {}
    for move in moves:
        vmi = snapshot.vmi_by_key[move.vmi]
        leaving = arrived.pop(vmi.uid, None) or snapshot.launchers_by_vmi[vmi.uid][0]
        arrived[vmi.uid] = _placed(_arriving(vmi, leaving, move, snapshot), move, vmi)
    left = {snapshot.launchers_by_vmi[uid][0].uid for uid in arrived}
    return _with(snapshot, left, arrived)


def _arriving(vmi: VirtualMachineInstance, leaving: Pod, move: Move, snapshot: Snapshot) -> Pod:
    return replace(target_pod(vmi, leaving, snapshot), uid=f"arriving-{move.id}")


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


def _placed(arriving: Pod, move: Move, vmi: VirtualMachineInstance) -> Pod:
    """What keeps it off the VM's other launchers has done its work, and would make each VM that
    has moved a class of its own for the planner.
    """
    off_others = tuple(t for t in arriving.pod_anti_affinity if t != off_its_launchers(vmi))
    return replace(arriving, node_name=move.target, phase="Running", pod_anti_affinity=off_others)
