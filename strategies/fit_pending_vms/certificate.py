"""Why no set of migrations can make room, in numbers that a person can check."""

from collections.abc import Iterator

import numpy as np

from rebalancer.model.plan import Reason, Refusal
from rebalancer.model.quantity import format_amount
from rebalancer.planning.movers import Movers
from rebalancer.planning.no_other_node import no_other_node
from rebalancer.scheduling.feasibility import Feasibility
from rebalancer.scheduling.state import BoolArray, IntArray


def headline(pending: Feasibility, movers: Movers, has_home: BoolArray) -> Reason:
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
    allowed = pending.allowed
    asked = sorted(pending.pod.requests.items())
    headroom_of = {resource: pending.state.headroom(resource) for resource, _ in asked}
    counts = np.bincount(movers.source, minlength=len(pending.state.nodes))
    freed = {resource: movers.released_on_nodes(resource) for resource, _ in asked}
    for node, name in enumerate(node.name for node in pending.state.nodes):
        reasons = pending.reasons(node)
        yield from reasons
        if not (allowed[node] and reasons):
            continue
        for resource, amount in asked:
            headroom = int(headroom_of[resource][node])
            if headroom < amount:
                most = int(freed[resource][node])
                yield Reason(
                    "freeable",
                    f"{resource}: moving away all {counts[node]} VMs that may leave would free"
                    f" {format_amount(most, resource)}, to"
                    f" {format_amount(headroom + most, resource)}",
                    node=name,
                )


def refusals(pending: Feasibility, movers: Movers, has_home: BoolArray) -> tuple[Refusal, ...]:
    """The VMs on nodes that the pod could go to which must stay there, each with the reason."""
    state = movers.state
    allowed = pending.allowed
    landing = [node.name for node, is_in in zip(state.nodes, allowed, strict=True) if is_in]
    stuck = [refused for name in landing for refused in movers.refused.get(name, ())]
    homeless = np.flatnonzero(~has_home & allowed[movers.source]).tolist()
    stuck += no_other_node((movers.movers[index] for index in homeless), state)
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
    may_go = movers.allowed.sum(axis=1)[movers.mover_class]
    may_stay = movers.allowed[movers.mover_class, movers.source]
    if (may_go == may_stay).all():
        where = "no second node" if (movers.source != movers.source[0]).any() else "no other node"
        return Reason("no-other-node", f"there is {where} that any movable VM may go to")
    return None


def _nothing_can_start(has_home: BoolArray) -> Reason | None:
    if has_home.any():
        return None
    return Reason(
        "nothing-can-start",
        f"none of the {len(has_home)} movable VMs fits on another node now, so no migration can"
        " start",
    )
