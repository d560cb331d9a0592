"""From a snapshot to the arrays of a fit problem, and back from its solution to moves."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from rebalancer.model.keys import ZONE
from rebalancer.model.objects import (
    Amounts,
    PersistentVolume,
    Pod,
    PodAffinityTerm,
    VirtualMachineInstance,
)
from rebalancer.model.plan import Cost, Move, Refusal
from rebalancer.model.snapshot import Snapshot
from rebalancer.planning import cost as costs
from rebalancer.planning.context import PlanningContext
from rebalancer.planning.ordering import dependencies
from rebalancer.planning.problem import FitProblem, MoveProblem, Moves
from rebalancer.policy.model import HoldKind
from rebalancer.scheduling.claimed_volumes import claimed_volumes
from rebalancer.scheduling.feasibility import Feasibility, evaluate
from rebalancer.scheduling.filters.inter_pod_affinity import barring_terms
from rebalancer.scheduling.filters.volume_binding import claim_problems
from rebalancer.scheduling.filters.volume_restrictions import claim_conflicts
from rebalancer.scheduling.migration_policy import migration_configuration
from rebalancer.scheduling.movability import refusal
from rebalancer.scheduling.state import BoolArray, ClusterState, IntArray
from rebalancer.scheduling.target_pod import TargetPods, off_its_launchers, released_requests

MILLISECONDS = 1000
"""Costs are seconds for people and whole milliseconds for the planner."""


class Mover(NamedTuple):
    """A VM that may leave its node."""

    vmi: VirtualMachineInstance
    source: int
    """Index of its node."""
    target_pod: Pod
    released: Amounts
    """What its node gets back when it leaves."""
    cost: Cost
    rules: "PlacementClass"


class PlacementClass(NamedTuple):
    """What movers with equal rules share. Arrays: one entry per node."""

    number: int
    allowed: BoolArray
    allowed_wherever_pods_are: BoolArray
    """As `allowed`, but without the rules that other moves may change."""
    charges: Mapping[str, costs.FloatArray]
    """Seconds for going to each node, by term of the cost."""


class Movers(NamedTuple):
    """All VMs that may be moved, and those that may not with the reason."""

    state: ClusterState
    movers: tuple[Mover, ...]
    classes: tuple[PlacementClass, ...]
    refused: Mapping[str, tuple[Refusal, ...]]
    """By node name."""


def find_movers(state: ClusterState, context: PlanningContext) -> Movers:
    """Looks at every VM; VMs with equal rules are evaluated once."""
    snapshot = state.snapshot
    targets = TargetPods(snapshot)
    classes: dict[tuple[object, ...], PlacementClass] = {}
    movers: list[Mover] = []
    refused: dict[str, list[Refusal]] = {}
    for vmi in sorted(snapshot.vmis, key=lambda v: v.key):
        reason = refusal_of(vmi, snapshot, context)
        if reason is not None:
            refused.setdefault(vmi.node_name or "", []).append(reason)
            continue
        pod = snapshot.launchers_by_vmi[vmi.uid][0]
        source = state.index[vmi.node_name or ""]
        target = targets.of(vmi, pod)
        # A VM never goes to its own node anyway, and rules without its uid can be shared.
        placed = _without_term(target, off_its_launchers(vmi))
        zone = state.nodes[source].labels.get(ZONE)
        # Of target pods, equal node selectors are one object.
        signature = zone, id(placed.node_selector), _besides_selector(placed, state)
        if signature not in classes:
            charges = costs.target_charges(placed, state.nodes[source], state, context.cost)
            classes[signature] = _placement_class(len(classes), placed, charges, state)
        cost = costs.base_cost(vmi, target, snapshot, context.cost)
        released = released_requests(pod, snapshot)
        movers.append(Mover(vmi, source, target, released, cost, classes[signature]))
    return Movers(
        state,
        tuple(movers),
        tuple(classes.values()),
        {node: tuple(refusals) for node, refusals in refused.items()},
    )


def refusal_of(
    vmi: VirtualMachineInstance, snapshot: Snapshot, context: PlanningContext
) -> Refusal | None:
    """Why the VM must stay, as the cluster, the policy and this cycle have it."""
    return context.avoided.get(vmi.key) or refusal(
        vmi,
        snapshot,
        failure_backoff_seconds=context.execution.failure_backoff_seconds,
        cooldown_seconds=context.execution.cooldown_seconds,
        may_move_reluctant=context.cost.prefer_no_eviction_seconds is not None,
        checks_quotas=context.execution.budget.check_quotas,
    )


def fit_problem(
    pending: Feasibility,
    movers: Movers,
    context: PlanningContext,
    *,
    ignores_placement: bool = False,
) -> FitProblem:
    """The arrays for one pending pod, with the resources of `resources_in_play`."""
    resources = resources_in_play(movers, pending)
    base = move_problem(movers, context, resources, ignores_placement=ignores_placement)
    state = movers.state
    [request] = _rows([pending.pod.requests], resources)
    landing = pending.allowed_wherever_pods_are if ignores_placement else pending.allowed
    landing = landing & ~state.is_draining
    if context.execution.hold.kind is HoldKind.LOCK_POD:
        # The lock pod has a slot of the node from before the first move until after the last.
        landing = landing & (state.headroom("pods") >= 1)
        request[resources.index("pods")] += 1
    return FitProblem(**base.fields(), request=request, landing=landing)


def move_problem(
    movers: Movers,
    context: PlanningContext,
    resources: Sequence[str],
    *,
    ignores_placement: bool = False,
) -> MoveProblem:
    """What all problems of moving these have in common.

    With `ignores_placement` the problem is a relaxation: rules that depend on where pods are, such
    as InterPodAffinity, otherwise taken as they are before any move, bar nothing. A bound found
    for it holds for every plan.
    """
    state = movers.state
    shape = len(movers.classes), len(state.nodes)
    allowed = np.array(
        [
            rules.allowed_wherever_pods_are if ignores_placement else rules.allowed
            for rules in movers.classes
        ],
        np.bool_,
    ).reshape(shape)
    for rules, home in zip(movers.classes, _homes(movers), strict=True):
        if home is not None:
            allowed[rules.number, home] = rules.allowed_wherever_pods_are[home]
    allowed &= ~state.is_draining
    charge = np.zeros(shape, np.int64)
    for rules in movers.classes:
        for seconds in rules.charges.values():
            charge[rules.number] += np.rint(seconds * MILLISECONDS).astype(np.int64)
    return MoveProblem(
        headroom=np.column_stack([state.headroom(r) for r in resources]),
        mover_node=np.array([mover.source for mover in movers.movers], np.int64),
        mover_request=_rows([mover.target_pod.requests for mover in movers.movers], resources),
        mover_release=_rows([mover.released for mover in movers.movers], resources),
        mover_cost=np.array([_milliseconds(mover.cost.total) for mover in movers.movers], np.int64),
        mover_class=np.array([mover.rules.number for mover in movers.movers], np.int64),
        allowed=allowed,
        charge=charge,
        max_moves=context.planning.max_moves_per_goal,
    )


def _homes(movers: Movers) -> list[int | None]:
    """For each class the node that all its movers are on, if it is one.

    A VM may keep others like itself off its node, such as one that KubeVirt has migrated before.
    That does not bar it from coming back.
    """
    nodes: list[set[int]] = [set() for _ in movers.classes]
    for mover in movers.movers:
        nodes[mover.rules.number].add(mover.source)
    return [next(iter(each)) if len(each) == 1 else None for each in nodes]


def resources_in_play(movers: Movers, pending: Feasibility | None = None) -> list[str]:
    """All that a mover or the pending pod asks for, in the order of the arrays' resource axis."""
    pods = [mover.target_pod for mover in movers.movers]
    if pending is not None:
        pods.append(pending.pod)
    return sorted({r for pod in pods for r, amount in pod.requests.items() if amount})


def to_moves(
    solution: Moves,
    problem: MoveProblem,
    movers: Movers,
    context: PlanningContext,
) -> tuple[Move, ...]:
    """The planner's pairs as moves, each waiting for those that free its room."""
    snapshot = movers.state.snapshot
    steps = problem.steps(solution)
    ids = _move_ids([movers.movers[step.mover] for step in steps])
    moves = []
    for step, move_id, waits in zip(steps, ids, dependencies(problem, solution), strict=True):
        mover = movers.movers[step.mover]
        size_bytes = costs.bytes_to_copy(mover.vmi, mover.target_pod)
        moves.append(
            Move(
                id=move_id,
                vmi=mover.vmi.key,
                vmi_uid=mover.vmi.uid,
                source=movers.state.nodes[step.source].name,
                target=movers.state.nodes[step.target].name,
                bytes=size_bytes,
                seconds=costs.copy_seconds(
                    size_bytes, migration_configuration(mover.vmi, snapshot), context.cost
                ),
                cost=costs.with_target_charges(mover.cost, mover.rules.charges, step.target),
                after=tuple(ids[wait] for wait in waits),
            )
        )
    return tuple(moves)


def _move_ids(moved: Sequence[Mover]) -> list[str]:
    """The VM's name; from its second move on with the number of the move."""
    ids: list[str] = []
    count = Counter[str]()
    for mover in moved:
        name = str(mover.vmi.key)
        count[name] += 1
        ids.append(name if count[name] == 1 else f"{name}#{count[name]}")
    return ids


def _rows(amounts: Sequence[Amounts], resources: Sequence[str]) -> IntArray:
    """Axes: item, resource."""
    rows = [[each.get(resource, 0) for resource in resources] for each in amounts]
    return np.array(rows, np.int64).reshape(len(amounts), len(resources))


def _without_term(pod: Pod, term: PodAffinityTerm) -> Pod:
    return replace(pod, pod_anti_affinity=tuple(t for t in pod.pod_anti_affinity if t != term))


def _placement_class(
    number: int, pod: Pod, charges: Mapping[str, costs.FloatArray], state: ClusterState
) -> PlacementClass:
    feasibility = evaluate(pod, state)
    return PlacementClass(
        number=number,
        allowed=feasibility.allowed,
        allowed_wherever_pods_are=feasibility.allowed_wherever_pods_are,
        charges=charges,
    )


def placement_signature(pod: Pod, state: ClusterState) -> tuple[object, ...]:
    """Equal for pods that the rules treat alike on every node."""
    return tuple(sorted(pod.node_selector.items())), _besides_selector(pod, state)


def _besides_selector(pod: Pod, state: ClusterState) -> tuple[object, ...]:
    """Namespace and labels only count as far as rules look at them; labels hold the VM's own uid,
    and terms name their namespaces themselves.
    """
    looks_at_itself = pod.pod_affinity or pod.topology_spread
    return (
        pod.node_affinity,
        pod.tolerations,
        pod.pod_affinity,
        pod.pod_anti_affinity,
        pod.topology_spread,
        pod.host_ports,
        (pod.namespace, *sorted(pod.labels.items())) if looks_at_itself else (),
        barring_terms(pod, state),
        claim_problems(pod, state),
        tuple(_reachability(each, state) for each in claimed_volumes(pod, state.snapshot)),
        claim_conflicts(pod, state),
    )


def _reachability(volume: PersistentVolume, state: ClusterState) -> tuple[object, ...]:
    """What the rules look at in a volume; which one it is matters only to a driver's limits."""
    is_limited = volume.csi is not None and volume.csi.driver in state.volumes.limits
    driver = volume.csi.driver if volume.csi else ""
    return volume.node_affinity, volume.zones, volume.csi if is_limited else driver


def _milliseconds(seconds: float) -> int:
    return round(seconds * MILLISECONDS)
