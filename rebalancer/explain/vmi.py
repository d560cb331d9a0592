"""Where one VM could go, and for every other node everything that bars it."""

from msgspec import Struct

from rebalancer.errors import InputError
from rebalancer.model.objects import ObjectKey, Pod, VirtualMachineInstance
from rebalancer.model.plan import Reason, Refusal
from rebalancer.model.snapshot import Snapshot
from rebalancer.planning.context import PlanningContext
from rebalancer.planning.movers import refusal_of
from rebalancer.scheduling.feasibility import Feasibility, evaluate
from rebalancer.scheduling.fit_error import grouped_reasons
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
    grouped_reasons: str
    """What bars it from how many of the other nodes, as the scheduler counts it."""


def explain_vmi(
    snapshot: Snapshot, vmi: VirtualMachineInstance, context: PlanningContext
) -> Explanation:
    """Asks every filter about the VM's pending pod, or about the pod a migration would make.

    Raises: InputError if the VM has no launcher pod to ask about.
    """
    pod = launcher_of(vmi, snapshot)
    own_node = pod.node_name or ""
    source = snapshot.node_by_name.get(own_node)
    asked = target_pod(vmi, pod, snapshot) if source else pod
    feasibility = evaluate(asked, ClusterState(snapshot.without_pod(pod)))
    others = [i for i, node in enumerate(snapshot.nodes) if node.name != own_node]
    return Explanation(
        vmi=vmi.key,
        pod=pod.name,
        requests=dict(asked.requests),
        node=own_node,
        scheduler_message=pod.unschedulable_message,
        refusal=refusal_of(vmi, snapshot, context) if own_node else None,
        nodes=_answers(feasibility, own_node),
        grouped_reasons=grouped_reasons(feasibility, others),
    )


def launcher_of(vmi: VirtualMachineInstance, snapshot: Snapshot) -> Pod:
    """The pod that the VM runs in or waits in, not the one that a migration is taking it to.

    Raises: InputError if it has none.
    """
    launchers = snapshot.launchers_by_vmi.get(vmi.uid, ())
    if not launchers:
        raise InputError(
            f"VirtualMachineInstance {vmi.key} (phase {vmi.phase}) has no launcher pod to explain"
        )
    return min(launchers, key=lambda pod: (pod.node_name != vmi.node_name, str(pod.created_at)))


def _answers(feasibility: Feasibility, own_node: str) -> tuple[NodeAnswer, ...]:
    own = Reason("own-node", "the VM is here", node=own_node)
    return tuple(
        NodeAnswer(node.name, (own,) if node.name == own_node else feasibility.reasons(index))
        for index, node in enumerate(feasibility.state.nodes)
    )
