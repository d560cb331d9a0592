"""The cluster once moves have been made, and nothing else has changed."""

from collections.abc import Iterable

from msgspec.structs import replace

from rebalancer.model.plan import Move
from rebalancer.model.snapshot import Snapshot
from rebalancer.scheduling.target_pod import TargetPods


def carried_out(snapshot: Snapshot, moves: Iterable[Move]) -> Snapshot:
    """Each moved VM runs where its last move takes it, in the pod that would be made there.

    Pods that brought hot-plugged volumes went with it; the new pod counts for them.
    """
    targets = {move.vmi_uid: move.target for move in moves}
    if not targets:
        return snapshot
    rendered = TargetPods(snapshot)
    arrived = {}
    for uid, target in targets.items():
        [launcher] = snapshot.launchers_by_vmi[uid]
        pod = rendered.of(snapshot.vmi_by_uid[uid], launcher)
        arrived[launcher.uid] = replace(pod, node_name=target, phase="Running")
    return replace(
        snapshot,
        pods=tuple(
            arrived.get(pod.uid, pod) for pod in snapshot.pods if pod.attached_to not in arrived
        ),
        vmis=tuple(
            replace(vmi, node_name=targets[vmi.uid]) if vmi.uid in targets else vmi
            for vmi in snapshot.vmis
        ),
    )
