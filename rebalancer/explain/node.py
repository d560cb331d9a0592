"""What a node has, which VMs may leave it and for where, and what bars the pending ones from it."""

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from rebalancer.explain.vmi import launcher_of
from rebalancer.model.keys import SCHEDULABLE
from rebalancer.model.objects import Node, ObjectKey, VirtualMachineInstance
from rebalancer.model.plan import Reason, Refusal
from rebalancer.model.snapshot import Snapshot
from rebalancer.planning.context import PlanningContext
from rebalancer.planning.movers import refusal_of
from rebalancer.scheduling.feasibility import evaluate
from rebalancer.scheduling.fit_error import grouped_reasons
from rebalancer.scheduling.state import ClusterState
from rebalancer.scheduling.target_pod import released_requests, target_pod


class NodeResource(Struct, frozen=True):
    """Amounts of one resource."""

    resource: str
    allocatable: int
    requested: int
    freeable: int
    """What the VMs hold that may leave and have another node now."""


class Resident(Struct, frozen=True):
    """A VM on the node."""

    vmi: ObjectKey
    memory_bytes: int
    """What its launcher pod asks for."""
    refusal: Refusal | None
    """Why it must stay."""
    targets: tuple[str, ...]
    """The nodes that would take it now."""
    grouped_reasons: str
    """What bars it from how many of the other nodes, as the scheduler counts it."""


class Candidate(Struct, frozen=True):
    """A pending VM, and what bars it from the node; nothing, where it could go there."""

    vmi: ObjectKey
    reasons: tuple[Reason, ...]


class NodeExplanation(Struct, frozen=True):
    node: str
    conditions: tuple[str, ...]
    """What keeps pods away that do not tolerate it."""
    resources: tuple[NodeResource, ...]
    residents: tuple[Resident, ...]
    candidates: tuple[Candidate, ...]


def explain_node(snapshot: Snapshot, node: Node, context: PlanningContext) -> NodeExplanation:
    """Asks every filter about each VM that is on the node, and each that waits for one."""
    state = ClusterState(snapshot)
    index = state.index[node.name]
    here = sorted((v for v in snapshot.vmis if v.node_name == node.name), key=lambda v: v.key)
    residents = tuple(_resident(vmi, state, context) for vmi in here)
    leaving = {resident.vmi for resident in residents if resident.targets}
    released = [
        released_requests(pod, snapshot)
        for vmi in here
        if vmi.key in leaving
        for pod in snapshot.launchers_by_vmi[vmi.uid]
    ]
    return NodeExplanation(
        node=node.name,
        conditions=tuple(_conditions(node)),
        resources=tuple(
            NodeResource(
                resource,
                allocatable,
                int(state.requested(resource)[index]),
                sum(amounts.get(resource, 0) for amounts in released),
            )
            for resource, allocatable in sorted(node.allocatable.items())
        ),
        residents=residents,
        candidates=tuple(_candidates(state, index)),
    )


def _conditions(node: Node) -> Iterator[str]:
    if not node.is_ready:
        yield "not ready"
    if node.is_unschedulable:
        yield "cordoned"
    if node.labels.get(SCHEDULABLE) != "true":
        yield f"virt-handler is silent: no label {SCHEDULABLE}=true"
    for taint in node.taints:
        value = f"={taint.value}" if taint.value else ""
        yield f"taint {taint.key}{value}:{taint.effect}"


def _resident(
    vmi: VirtualMachineInstance, state: ClusterState, context: PlanningContext
) -> Resident:
    snapshot = state.snapshot
    launchers = snapshot.launchers_by_vmi.get(vmi.uid, ())
    memory_bytes = max((pod.requests.get("memory", 0) for pod in launchers), default=0)
    refusal = refusal_of(vmi, snapshot, context)
    if refusal is not None:
        return Resident(vmi.key, memory_bytes, refusal, (), "")
    source = state.index[vmi.node_name or ""]
    feasibility = evaluate(target_pod(vmi, launchers[0], snapshot), state)
    others = [i for i in range(len(state.nodes)) if i != source]
    targets = [state.nodes[i].name for i in np.flatnonzero(feasibility.feasible) if i != source]
    grouped = grouped_reasons(feasibility, others)
    return Resident(vmi.key, memory_bytes, None, tuple(targets), grouped)


def _candidates(state: ClusterState, node: int) -> Iterator[Candidate]:
    snapshot = state.snapshot
    for vmi in sorted(snapshot.vmis, key=lambda v: v.key):
        launchers = snapshot.launchers_by_vmi.get(vmi.uid, ())
        if launchers and not any(pod.node_name for pod in launchers):
            pod = launcher_of(vmi, snapshot)
            # Only a nominated one holds room, in which it must not stand in its own way.
            seen = ClusterState(snapshot.without_pod(pod)) if pod.nominated_node_name else state
            yield Candidate(vmi.key, evaluate(pod, seen).reasons(node))
