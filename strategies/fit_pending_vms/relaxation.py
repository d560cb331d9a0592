"""For a VM that cannot be helped as things are: the least change by a person that would help.

Each one is checked by planning anew on a cluster in which it has been made.
"""

from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace

from rebalancer.model.keys import OPT_OUT
from rebalancer.model.objects import Pod
from rebalancer.model.plan import Reason
from rebalancer.model.quantity import format_amount
from rebalancer.model.wording import count_of
from rebalancer.planning.homes import most_headroom
from rebalancer.planning.movers import fit_problem, resources_in_play
from rebalancer.planning.problem import Solution
from rebalancer.planning.search import search_direct
from rebalancer.planning.view import View
from rebalancer.scheduling.feasibility import Feasibility, evaluate

_GIBIBYTE = 2**30


def relaxations(pending: Feasibility, view: View) -> tuple[Reason, ...]:
    """At most one of each kind, in the order of how little they ask of a person."""
    found = (
        *_uncordon(pending.pod, view),
        *_opt_in(pending.pod, view),
        *_less_memory(pending, view),
        *_stop(pending),
    )
    return tuple(Reason("would-help", message, node=node) for node, message in found)


Advice = tuple[str, str]
"""A node and what would make room there."""


def _uncordon(pod: Pod, view: View) -> Iterator[Advice]:
    opened = view.without_cordons
    if opened is None or (solution := _plan(pod, opened)) is None:
        return
    entered = [solution.node, *(target for _, target in solution.moves)]
    names = {opened.state.nodes[i].name for i in entered if view.state.is_unschedulable[i]}
    node = opened.state.nodes[solution.node].name
    yield node, f"uncordon {_listed(names)}: {_then(solution)}"


def _opt_in(pod: Pod, view: View) -> Iterator[Advice]:
    opened = view.without_opt_outs
    if opened is None or (solution := _plan(pod, opened)) is None:
        return
    refused = (each for refusals in view.movers.refused.values() for each in refusals)
    opted_out = {each.vmi for each in refused if each.code == "opted-out"}
    moved = {opened.movers.vmis[mover].key for mover, _ in solution.moves}
    names = {str(key) for key in moved & opted_out}
    node = opened.state.nodes[solution.node].name
    yield node, f"remove annotation {OPT_OUT} from {_listed(names)}: {_then(solution)}"


def _plan(pod: Pod, view: View) -> Solution | None:
    problem = fit_problem(evaluate(pod, view.state), view.movers, view.context)
    return search_direct(problem, is_brief=True).solution


def _less_memory(pending: Feasibility, view: View) -> Iterator[Advice]:
    """The fewest whole GiB that the VM would have to ask for less, or one node to have more."""
    movers = view.movers
    problem = fit_problem(pending, movers, view.context)
    memory = resources_in_play(movers, pending).index("memory")
    most = int(problem.request[memory]) // _GIBIBYTE
    anybody = np.ones(problem.mover_count, np.bool_)
    roomiest = int(most_headroom(problem, anybody)[problem.landing, memory].max(initial=0))
    too_few = max(0, -(-(int(problem.request[memory]) - roomiest) // _GIBIBYTE) - 1)
    enough = most + 1
    best: Solution | None = None
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        request = problem.request.copy()
        request[memory] -= middle * _GIBIBYTE
        solution = search_direct(replace(problem, request=request), is_brief=True).solution
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
    allowed = pending.allowed
    lack = np.column_stack([pending.pod.requests[r] - state.headroom(r) for r in resources])
    candidates = [
        (pod.requests.get("memory", 0), pod, node)
        for pod, node in state.placements
        if pod.vmi_uid
        and pod.node_name
        and allowed[node]
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


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names))


def _then(solution: Solution) -> str:
    count = len(solution.moves)
    if not count:
        return "it fits then"
    return f"it fits then after {count_of(count, 'migration')}"
