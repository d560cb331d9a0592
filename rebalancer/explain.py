"""Where one VM could go, and for every other node everything that bars it."""

from difflib import get_close_matches

from msgspec import Struct
from msgspec.structs import replace

from rebalancer.errors import InputError
from rebalancer.model.objects import ObjectKey, Pod, VirtualMachineInstance
from rebalancer.model.plan import Reason, Refusal
from rebalancer.model.snapshot import Snapshot
from rebalancer.planning.context import PlanningContext
from rebalancer.planning.movers import refusal_of
from rebalancer.scheduling.feasibility import evaluate
from rebalancer.scheduling.state import ClusterState
from rebalancer.scheduling.target_pod import target_pod


class NodeAnswer(Struct, frozen=True):
    """One node and what bars the pod from it; nothing, where it could go there."""

    node: str
    reasons: tuple[Reason, ...]


class Explanation(Struct, frozen=True):
    vmi: ObjectKey
    pod: str
    requests: dict[str, int]
    """What the pod (the next one, for a VM that runs) asks for."""
    node: str
    """Where the VM is, empty while it is pending."""
    scheduler_message: str
    refusal: Refusal | None
    """Why a running VM may not be moved at all."""
    nodes: tuple[NodeAnswer, ...]


def find_vmi(snapshot: Snapshot, name: str) -> VirtualMachineInstance:
    """The VMI called `namespace/name`, or `name` where only one namespace has one of that name.

    Raises: InputError that says which names are meant, or come close.
    """
    by_name: dict[str, list[VirtualMachineInstance]] = {}
    for vmi in snapshot.vmis:
        for known in (vmi.name, str(vmi.key)):
            by_name.setdefault(known, []).append(vmi)
    matches = by_name.get(name, [])
    if len(matches) == 1:
        return matches[0]
    if matches:
        keys = ", ".join(sorted(str(vmi.key) for vmi in matches))
        raise InputError(f"VirtualMachineInstance {name} could be any of these, name one: {keys}")
    close = get_close_matches(name, by_name, n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    count = len(snapshot.vmis)
    raise InputError(f"VirtualMachineInstance {name} is none of the {count} there are{hint}")


def explain_vmi(
    snapshot: Snapshot, vmi: VirtualMachineInstance, context: PlanningContext
) -> Explanation:
    """Asks every filter about the VM's pending pod, or about the pod a migration would make.

    Raises: InputError if the VM has no launcher pod to ask about.
    """
    pod = _launcher(snapshot, vmi)
    source = snapshot.node_by_name.get(pod.node_name or "")
    asked = target_pod(vmi, pod, snapshot) if source else pod
    return Explanation(
        vmi=vmi.key,
        pod=pod.name,
        requests=dict(asked.requests),
        node=pod.node_name or "",
        scheduler_message=pod.unschedulable_message,
        refusal=refusal_of(vmi, snapshot, context) if pod.node_name else None,
        nodes=_answers(snapshot, asked, pod.node_name or ""),
    )


def _launcher(snapshot: Snapshot, vmi: VirtualMachineInstance) -> Pod:
    """The pod that the VM runs in or waits in, not the one that a migration is taking it to."""
    launchers = snapshot.launchers_by_vmi.get(vmi.uid, ())
    if not launchers:
        raise InputError(
            f"VirtualMachineInstance {vmi.key} (phase {vmi.phase}) has no launcher pod to explain"
        )
    return min(launchers, key=lambda pod: (pod.node_name != vmi.node_name, str(pod.created_at)))


def _answers(snapshot: Snapshot, pod: Pod, own_node: str) -> tuple[NodeAnswer, ...]:
    feasibility = evaluate(pod, ClusterState(_without(snapshot, pod)))
    own = Reason("own-node", "the VM is here", node=own_node)
    return tuple(
        NodeAnswer(node.name, (own,) if node.name == own_node else feasibility.reasons(index))
        for index, node in enumerate(snapshot.nodes)
    )


def _without(snapshot: Snapshot, pod: Pod) -> Snapshot:
    """A nominated pod holds room on its node; it must not stand in its own way."""
    return replace(snapshot, pods=tuple(other for other in snapshot.pods if other.uid != pod.uid))
