"""Why no set of migrations can make room, in numbers that a person can check."""

from collections.abc import Iterator

import numpy as np

from rebalancer.model.plan import Reason, Refusal
from rebalancer.model.quantity import format_amount
from rebalancer.planning.movers import Mover, Movers
from rebalancer.planning.no_other_node import no_other_node
from rebalancer.scheduling.feasibility import Feasibility
from rebalancer.scheduling.state import IntArray


def headline(pending: Feasibility, movers: Movers, has_home: list[bool]) -> Reason:
    """The shortest proof that holds."""
    return (
        _too_large(pending)
        or _no_capacity(pending, movers)
        or _no_movers(movers)
        or _nothing_can_start(has_home)
        or Reason("no-set-of-moves", "no set of migrations opens enough room on any one node")
    )


def node_reasons(pending: Feasibility, movers: Movers) -> Iterator[Reason]:
    """For each node what bars the pod; where that is room, how much moving VMs away could free."""
    for node in range(len(pending.state.nodes)):
        reasons = pending.reasons(node)
        yield from reasons
        if pending.allowed[node] and reasons:
            yield from _freeable(pending, movers, node)


def refusals(pending: Feasibility, movers: Movers, has_home: list[bool]) -> tuple[Refusal, ...]:
    """The VMs on nodes that the pod could go to which must stay there, each with the reason."""
    state = movers.state
    landing = [node.name for node, is_in in zip(state.nodes, pending.allowed, strict=True) if is_in]
    stuck = [refused for name in landing for refused in movers.refused.get(name, ())]
    stuck += [
        no_other_node(mover, state)
        for mover, is_homed in zip(movers.movers, has_home, strict=True)
        if not is_homed and pending.allowed[mover.source]
    ]
    return tuple(sorted(stuck, key=lambda refused: refused.vmi))


def _lacking(pending: Feasibility, room: dict[str, int]) -> str | None:
    """The first resource of which there is less than the pod asks, as needs and has."""
    for resource, amount in sorted(pending.pod.requests.items()):
        if room[resource] < amount:
            return (
                f"{resource}: needs {format_amount(amount, resource)},"
                f" {{}} {format_amount(room[resource], resource)}"
            )
    return None


def _too_large(pending: Feasibility) -> Reason | None:
    nodes = np.flatnonzero(pending.allowed)
    if not len(nodes):
        return None
    resources = pending.pod.requests
    largest = {r: int(pending.state.allocatable(r)[nodes].max()) for r in resources}
    if lack := _lacking(pending, largest):
        return Reason("too-large", lack.format("the largest eligible node has"))
    return None


def _no_capacity(pending: Feasibility, movers: Movers) -> Reason | None:
    """Moves shift room about and add none, so the sum over all nodes in play bounds every hole."""
    in_play = pending.allowed.copy()
    for rules in movers.classes:
        in_play |= rules.allowed
    room = {
        resource: int(_positive(pending.state.headroom(resource))[in_play].sum())
        for resource in pending.pod.requests
    }
    if lack := _lacking(pending, room):
        message = lack.format("all nodes that could take part together have")
        return Reason("no-capacity", f"{message} of headroom: no set of migrations can do it")
    return None


def _positive(headroom: IntArray) -> IntArray:
    return np.maximum(headroom, 0)


def _no_movers(movers: Movers) -> Reason | None:
    if not movers.movers:
        return Reason("no-movable-vm", "no VM in the cluster may be moved")
    sources = {mover.source for mover in movers.movers}
    if all(not _elsewhere(mover).any() for mover in movers.movers):
        where = "no other node" if len(sources) == 1 else "no second node"
        return Reason("no-other-node", f"there is {where} that any movable VM may go to")
    return None


def _elsewhere(mover: Mover) -> "np.typing.NDArray[np.bool_]":
    elsewhere = mover.rules.allowed.copy()
    elsewhere[mover.source] = False
    return elsewhere


def _nothing_can_start(has_home: list[bool]) -> Reason | None:
    if any(has_home):
        return None
    return Reason(
        "nothing-can-start",
        f"none of the {len(has_home)} movable VMs fits on another node now, so no migration can"
        " start",
    )


def _freeable(pending: Feasibility, movers: Movers, node: int) -> Iterator[Reason]:
    here = [mover for mover in movers.movers if mover.source == node]
    for resource, amount in sorted(pending.pod.requests.items()):
        headroom = int(pending.state.headroom(resource)[node])
        if headroom >= amount:
            continue
        freed = sum(mover.released.get(resource, 0) for mover in here)
        yield Reason(
            "freeable",
            f"{resource}: moving away all {len(here)} VMs that may leave would free"
            f" {format_amount(freed, resource)}, to {format_amount(headroom + freed, resource)}",
            node=movers.state.nodes[node].name,
        )
