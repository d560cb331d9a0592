"""From a snapshot to the arrays of a fit problem, and back from its solution to moves."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple, overload

import numpy as np
from msgspec import Struct

from rebalancer.model.objects import Amounts, Pod, VirtualMachineInstance
from rebalancer.model.plan import Cost, Move, Refusal
from rebalancer.model.snapshot import Snapshot
from rebalancer.planning import cost as costs
from rebalancer.planning.context import PlanningContext
from rebalancer.planning.mover_kinds import Kind, Kinds
from rebalancer.planning.ordering import dependencies
from rebalancer.planning.placement import PlacementClass, placement_classes
from rebalancer.planning.problem import FitProblem, MoveProblem, Moves
from rebalancer.policy.model import HoldKind
from rebalancer.scheduling.feasibility import Feasibility
from rebalancer.scheduling.migration_policy import migration_configuration
from rebalancer.scheduling.movability import Movability
from rebalancer.scheduling.state import BoolArray, ClusterState, IntArray

MILLISECONDS = 1000
"""Costs are seconds for people and whole milliseconds for the planner."""

_BY_NAME = attrgetter("namespace", "name")


class Mover(NamedTuple):
    """A VM that may leave its node."""

    vmi: VirtualMachineInstance
    source: int
    """Index of its node."""
    source_pod: Pod
    kind: Kind
    rules: PlacementClass
    movers: "Movers"

    @property
    def target_pod(self) -> Pod:
        return self.movers.kinds.targets.of(self.vmi, self.source_pod)

    @property
    def released(self) -> Amounts:
        """What its node gets back when it leaves."""
        return self.kind.released

    @property
    def cost(self) -> Cost:
        """Of moving it anywhere."""
        movers = self.movers
        return costs.base_cost(
            self.vmi, self.kind.target_pod, movers.state.snapshot, movers.context.cost
        )


class Movers(Struct, frozen=True, eq=False, dict=True):
    """All VMs that may be moved, and those that may not with the reason. Axis m: movers."""

    state: ClusterState
    context: PlanningContext
    kinds: Kinds
    vmis: tuple[VirtualMachineInstance, ...]
    """(m,) by namespace and name."""
    source_pod: IntArray
    """(m,) position of its launcher pod in the snapshot."""
    kind: IntArray
    """(m,) index of its kind."""
    cost: IntArray
    """(m,) milliseconds, wherever it goes."""
    mover_class: IntArray
    """(m,) index of its class."""
    classes: tuple[PlacementClass, ...]
    allowed: BoolArray
    """(k, n) where each class may go."""
    refused: Mapping[str, tuple[Refusal, ...]]
    """By node name."""

    @cached_property
    def source(self) -> IntArray:
        """(m,) index of its node."""
        return self.state.node_of_pod[self.source_pod]

    @cached_property
    def charge(self) -> IntArray:
        """(k, n) milliseconds for going to each node; classes share few sets of charges."""
        charges = {id(rules.charges): rules.charges for rules in self.classes}
        rows = np.zeros((len(charges), len(self.state.nodes)), np.int64)
        for i, terms in enumerate(charges.values()):
            for seconds in terms.values():
                rows[i] += np.rint(seconds * MILLISECONDS).astype(np.int64)
        index = {identity: i for i, identity in enumerate(charges)}
        return rows[[index[id(rules.charges)] for rules in self.classes]]

    def released_on_nodes(self, resource: str) -> IntArray:
        """(n,) what each node would get back of it if all that may leave it were gone."""
        freed = np.zeros(len(self.state.nodes), np.int64)
        if resource in self.kinds.released:
            np.add.at(freed, self.source, self.kinds.released[resource][self.kind])
        return freed

    @property
    def movers(self) -> Sequence[Mover]:
        """One by one; each is made when it is looked at."""
        return _Lazily(self)


class _Lazily(Sequence[Mover]):
    def __init__(self, movers: Movers) -> None:
        self._movers = movers

    def __len__(self) -> int:
        return len(self._movers.vmis)

    @overload
    def __getitem__(self, index: int) -> Mover: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Mover]: ...
    def __getitem__(self, index: int | slice) -> Mover | Sequence[Mover]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        movers = self._movers
        return Mover(
            vmi=movers.vmis[index],
            source=int(movers.source[index]),
            source_pod=movers.state.snapshot.pods[movers.source_pod[index]],
            kind=movers.kinds.found[movers.kind[index]],
            rules=movers.classes[movers.mover_class[index]],
            movers=movers,
        )


def find_movers(state: ClusterState, context: PlanningContext) -> Movers:
    """Looks at every VM; what those that need the same have in common is worked out once."""
    snapshot = state.snapshot
    movability = _movability(snapshot, context)
    kinds = Kinds(state, context.cost)
    refused: dict[str, list[Refusal]] = {}
    vmis: list[VirtualMachineInstance] = []
    pods: list[int] = []
    kinds_of: list[int] = []
    past: dict[int, Cost] = {}
    for vmi in sorted(snapshot.vmis, key=_BY_NAME):
        key = vmi.key
        reason = context.avoided.get(key) or movability.refusal(vmi)
        if reason is not None:
            refused.setdefault(vmi.node_name or "", []).append(reason)
            continue
        pod = snapshot.launchers_by_vmi[vmi.uid][0]
        kinds_of.append(kinds.of(vmi, pod))
        if key in snapshot.migrations_by_vmi:
            target = kinds.found[kinds_of[-1]].target_pod
            past[len(vmis)] = costs.base_cost(vmi, target, snapshot, context.cost)
        vmis.append(vmi)
        pods.append(snapshot.position_of_pod[pod.uid])
    source_pod, kind = np.array(pods, np.int64), np.array(kinds_of, np.int64)
    cost = _milliseconds(kind.cost for kind in kinds.found)[kind]
    cost[list(past)] = _milliseconds(past.values())
    rules_of = np.array([kind.rules for kind in kinds.found], np.int64)[kind]
    mover_class, classes = placement_classes(kinds.rules, rules_of, source_pod, state, context.cost)
    return Movers(
        state=state,
        context=context,
        kinds=kinds,
        vmis=tuple(vmis),
        source_pod=source_pod,
        kind=kind,
        cost=cost,
        mover_class=mover_class,
        classes=classes,
        allowed=_per_node([each.allowed for each in classes], state),
        refused={node: tuple(refusals) for node, refusals in refused.items()},
    )


def refusal_of(
    vmi: VirtualMachineInstance, snapshot: Snapshot, context: PlanningContext
) -> Refusal | None:
    """Why the VM must stay, as the cluster, the policy and this cycle have it."""
    return context.avoided.get(vmi.key) or _movability(snapshot, context).refusal(vmi)


def _movability(snapshot: Snapshot, context: PlanningContext) -> Movability:
    """As the policy has it."""
    return Movability(
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
    requests = pending.pod.requests
    request = np.array([requests.get(resource, 0) for resource in resources], np.int64)
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
    state, kinds = movers.state, movers.kinds
    if ignores_placement:
        allowed = _per_node([each.allowed_wherever_pods_are for each in movers.classes], state)
    else:
        allowed = movers.allowed.copy()
    for number, home in _homes(movers):
        allowed[number, home] = movers.classes[number].allowed_wherever_pods_are[home]
    allowed[:, state.is_draining] = False
    return MoveProblem(
        headroom=np.column_stack([state.headroom(r) for r in resources]),
        mover_node=movers.source,
        mover_request=_rows(kinds.asked, resources, len(kinds.found))[movers.kind],
        mover_release=_rows(kinds.released, resources, len(kinds.found))[movers.kind],
        mover_cost=movers.cost,
        mover_class=movers.mover_class,
        allowed=allowed,
        charge=movers.charge,
        max_moves=context.planning.max_moves_per_goal,
    )


def _homes(movers: Movers) -> Iterator[tuple[int, int]]:
    """Each class whose movers are all on one node, and that node.

    A VM may keep others like itself off its node. That does not bar it from coming back.
    """
    lowest = np.full(len(movers.classes), len(movers.state.nodes))
    highest = np.full(len(movers.classes), -1)
    np.minimum.at(lowest, movers.mover_class, movers.source)
    np.maximum.at(highest, movers.mover_class, movers.source)
    for number in np.flatnonzero(lowest == highest).tolist():
        yield number, int(lowest[number])


def resources_in_play(movers: Movers, pending: Feasibility | None = None) -> list[str]:
    """All that a mover or the pending pod asks for, in the order of the arrays' resource axis."""
    is_met = np.bincount(movers.kind, minlength=len(movers.kinds.found)) > 0
    asked = {r for r, amounts in movers.kinds.asked.items() if amounts[is_met].any()}
    if pending is not None:
        asked |= {r for r, amount in pending.pod.requests.items() if amount}
    return sorted(asked)


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


def _rows(columns: Mapping[str, IntArray], resources: Sequence[str], size: int) -> IntArray:
    """Axes: item, of which there are so many, and resource."""
    none = np.zeros(size, np.int64)
    return np.column_stack([columns.get(resource, none) for resource in resources])


def _per_node(masks: Sequence[BoolArray], state: ClusterState) -> BoolArray:
    """Axes: mask, node."""
    return np.array(masks, np.bool_).reshape(len(masks), len(state.nodes))


def _milliseconds(each: Iterable[Cost]) -> IntArray:
    return np.array([round(cost.total * MILLISECONDS) for cost in each], np.int64)
