"""Where one VM could go, and for every other node everything that bars it."""

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
    """Where the VM runs, empty while it is pending."""
    scheduler_message: str
    refusal: Refusal | None
    """Why a running VM may not be moved at all."""
    nodes: tuple[NodeAnswer, ...]


def find_vmi(snapshot: Snapshot, name: str) -> VirtualMachineInstance:
    """The VMI called `namespace/name`, or `name` where only one namespace has one of that name.

    Raises: InputError that lists what there is instead.
    """
    if "/" in name:
        matches = [vmi for vmi in snapshot.vmis if str(vmi.key) == name]
    else:
        matches = [vmi for vmi in snapshot.vmis if vmi.name == name]
    if len(matches) == 1:
        return matches[0]
    if matches:
        keys = ", ".join(str(vmi.key) for vmi in matches)
        raise InputError(f"VirtualMachineInstance {name} is not one but several: {keys}")
    raise InputError(
        f"VirtualMachineInstance {name} is not in the cluster; it has {len(snapshot.vmis)} others"
        " (name one as NAMESPACE/NAME)"
    )


def explain_vmi(
    snapshot: Snapshot, vmi: VirtualMachineInstance, context: PlanningContext
) -> Explanation:
    """Asks every filter about the VM's pending pod, or about the pod a migration would make.

    Raises: InputError if the VM has no launcher pod to ask about.
    """
    launchers = snapshot.launchers_by_vmi.get(vmi.uid, ())
    if not launchers:
        raise InputError(
            f"VirtualMachineInstance {vmi.key} (phase {vmi.phase}) has no launcher pod to explain"
        )
    pod = launchers[0]
    source = snapshot.node_by_name.get(pod.node_name or "")
    asked = target_pod(vmi, pod, snapshot) if source else pod
    return Explanation(
        vmi=vmi.key,
        pod=pod.name,
        requests=dict(asked.requests),
        node=source.name if source else "",
        scheduler_message=pod.unschedulable_message,
        refusal=refusal_of(vmi, snapshot, context) if source else None,
        nodes=_answers(snapshot, asked, source.name if source else ""),
    )


def _answers(snapshot: Snapshot, pod: Pod, own_node: str) -> tuple[NodeAnswer, ...]:
    state = ClusterState(_without(snapshot, pod))
    feasibility = evaluate(pod, state)
    own = Reason("own-node", "the VM runs here", node=own_node)
    return tuple(
        NodeAnswer(node.name, (own,) if node.name == own_node else feasibility.reasons(index))
        for index, node in enumerate(snapshot.nodes)
    )


def _without(snapshot: Snapshot, pod: Pod) -> Snapshot:
    """A nominated pod holds room on its node; it must not stand in its own way."""
    return replace(snapshot, pods=tuple(other for other in snapshot.pods if other.uid != pod.uid))
