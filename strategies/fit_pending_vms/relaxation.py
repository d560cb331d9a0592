"""For a VM that cannot be helped as things are: the least change by a person that would help.

Each one is checked by planning anew on a cluster in which it has been made.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from rebalancer.model.keys import OPT_OUT
from rebalancer.model.objects import Pod
from rebalancer.model.plan import Reason
from rebalancer.model.quantity import format_amount
from rebalancer.model.snapshot import Snapshot
from rebalancer.model.wording import count_of
from rebalancer.planning.context import PlanningContext
from rebalancer.planning.movers import Movers, find_movers, fit_problem, resources_in_play
from rebalancer.planning.problem import Solution
from rebalancer.planning.search import search_direct
from rebalancer.scheduling.feasibility import Feasibility, evaluate
from rebalancer.scheduling.state import ClusterState

_UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"
_GIBIBYTE = 2**30


def relaxations(
    pending: Feasibility, movers: Movers, context: PlanningContext
) -> tuple[Reason, ...]:
    """At most one of each kind, in the order of how little they ask of a person."""
    found = (
        *_uncordon(pending.pod, movers.state.snapshot, context),
        *_opt_in(pending.pod, movers, context),
        *_less_memory(pending, movers, context),
        *_stop(pending),
    )
    return tuple(Reason("would-help", message, node=node) for node, message in found)


Advice = tuple[str, str]
"""A node and what would make room there."""


def _uncordon(pod: Pod, snapshot: Snapshot, context: PlanningContext) -> Iterator[Advice]:
    cordoned = {node.name for node in snapshot.nodes if node.is_unschedulable}
    if not cordoned:
        return
    opened = tuple(
        replace(
            node,
            is_unschedulable=False,
            taints=tuple(taint for taint in node.taints if taint.key != _UNSCHEDULABLE_TAINT),
        )
        for node in snapshot.nodes
    )
    plan = _plan(pod, replace(snapshot, nodes=opened), context)
    if plan is None:
        return
    movers, solution = plan
    entered = (solution.node, *(target for _, target in solution.moves))
    names = {movers.state.nodes[index].name for index in entered}
    node = movers.state.nodes[solution.node].name
    yield node, f"uncordon {_listed(names & cordoned)}: {_then(solution)}"


def _opt_in(pod: Pod, movers: Movers, context: PlanningContext) -> Iterator[Advice]:
    snapshot = movers.state.snapshot
    opted_out = {
        refusal.vmi
        for refusals in movers.refused.values()
        for refusal in refusals
        if refusal.code == "opted-out"
    }
    if not opted_out:
        return
    plan = _plan(
        pod,
        replace(
            snapshot,
            vmis=tuple(
                replace(v, annotations=_without_opt_out(v.annotations)) for v in snapshot.vmis
            ),
            pods=tuple(
                replace(p, annotations=_without_opt_out(p.annotations)) for p in snapshot.pods
            ),
        ),
        context,
    )
    if plan is None:
        return
    opened, solution = plan
    moved = {opened.movers[mover].vmi.key for mover, _ in solution.moves}
    names = [str(key) for key in moved & opted_out]
    node = opened.state.nodes[solution.node].name
    yield node, f"remove annotation {OPT_OUT} from {_listed(names)}: {_then(solution)}"


def _without_opt_out(annotations: Mapping[str, str]) -> Mapping[str, str]:
    if OPT_OUT not in annotations:
        return annotations
    return {key: value for key, value in annotations.items() if key != OPT_OUT}


def _plan(pod: Pod, snapshot: Snapshot, context: PlanningContext) -> tuple[Movers, Solution] | None:
    state = ClusterState(snapshot)
    movers = find_movers(state, context)
    solution = search_direct(fit_problem(evaluate(pod, state), movers, context)).solution
    return None if solution is None else (movers, solution)


def _less_memory(
    pending: Feasibility, movers: Movers, context: PlanningContext
) -> Iterator[Advice]:
    """The fewest whole GiB that the VM would have to ask for less, or one node to have more."""
    problem = fit_problem(pending, movers, context)
    memory = resources_in_play(movers, pending).index("memory")
    most = int(problem.request[memory]) // _GIBIBYTE
    too_few, enough = 0, most + 1
    best: Solution | None = None
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        request = problem.request.copy()
        request[memory] -= middle * _GIBIBYTE
        solution = search_direct(replace(problem, request=request)).solution
        if solution is None:
            too_few = middle
        else:
            enough, best = middle, solution
    if best is not None:
        node = movers.state.nodes[best.node].name
        amount = format_amount(enough * _GIBIBYTE, "memory")
        yield node, f"{amount} more memory here, or as much less for the VM: {_then(best)}"


def _stop(pending: Feasibility) -> Iterator[Advice]:
    """The VM to stop: no more important than the pending one, the smallest that is enough."""
    state = pending.state
    resources = [r for r, amount in pending.pod.requests.items() if amount]
    lack = np.column_stack([pending.pod.requests[r] - state.headroom(r) for r in resources])
    candidates = [
        (pod.requests.get("memory", 0), pod, node)
        for pod, node in state.placements
        if pod.vmi_uid
        and pod.node_name
        and pending.allowed[node]
        and pod.priority <= pending.pod.priority
        and all(pod.requests.get(r, 0) >= lack[node, i] for i, r in enumerate(resources))
    ]
    if not candidates:
        return
    size, pod, node = min(candidates, key=lambda c: (c[0], c[1].key))
    vmi = state.snapshot.vmi_by_uid.get(pod.vmi_uid or "")
    name = vmi.key if vmi else pod.key
    yield (
        state.nodes[node].name,
        f"stop VM {name} ({format_amount(size, 'memory')}): it fits then",
    )


def _listed(names: Sequence[str] | set[str]) -> str:
    return ", ".join(sorted(names))


def _then(solution: Solution) -> str:
    count = len(solution.moves)
    if not count:
        return "it fits then"
    return f"it fits then after {count_of(count, 'migration')}"
