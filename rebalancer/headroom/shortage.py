"""Why no placing of some items can exist: sums and counts that no placing gets round."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from rebalancer.headroom.room import Item, Loss, Room
from rebalancer.scheduling.state import BoolArray, IntArray


class TooFewSlots(NamedTuple):
    """More items need at least `request` each than nodes have room for."""

    request: IntArray
    """(r,)"""
    items: int
    slots: int
    nodes: int
    """How many nodes that are left may take any of them."""


class TooLittle(NamedTuple):
    """Together, items need more of a resource than nodes have."""

    resource: int
    needed: int
    headroom: int
    items: int
    nodes: int


Shortage = TooFewSlots | TooLittle


def shortage(room: Room, loss: Loss, items: Sequence[Item]) -> Shortage | None:
    """The first such reason, None where none of them tells.

    What keeps items apart is left aside: it takes room from none.
    """
    counts = Counter(item.kind for item in items)
    for kind, count in counts.items():
        if loss.nodes.issuperset(room.candidates(kind)):
            nodes = int((room.allowed(kind) & loss.is_left).sum())
            return TooFewSlots(room.requests[kind], count, 0, nodes)
    for kinds in _groups(room, list(counts)):
        number = np.array([counts[kind] for kind in kinds])
        may_go = np.array([room.allowed(kind) for kind in kinds]) & loss.is_left
        found = _too_few_slots(room, kinds, number, may_go) or _too_little(
            room, kinds, number, may_go
        )
        if found is not None:
            return found
    return None


def _groups(room: Room, kinds: list[int]) -> Iterator[list[int]]:
    """All of them, then those that may go to no more nodes than one of them."""
    yield kinds
    masks = {room.allowed_of[kind] for kind in kinds}
    for mask in sorted(masks):
        members = [kind for kind in kinds if room.is_within[room.allowed_of[kind], mask]]
        if len(members) < len(kinds):
            yield members


def _too_few_slots(
    room: Room, kinds: list[int], number: IntArray, may_go: BoolArray
) -> TooFewSlots | None:
    """Those that need as much as one of the kinds, or more, against the room for that kind."""
    requests = room.requests[kinds]
    for kind, request in zip(kinds, requests, strict=True):
        as_large = (requests >= request).all(axis=1)
        nodes = may_go[as_large].any(axis=0)
        items = int(number[as_large].sum())
        slots = int(room.slots(kind)[nodes].sum())
        if slots < items:
            return TooFewSlots(request, items, slots, int(nodes.sum()))
    return None


def _too_little(
    room: Room, kinds: list[int], number: IntArray, may_go: BoolArray
) -> TooLittle | None:
    """For each resource, those that need any of it against all headroom where one of them fits."""
    requests = room.requests[kinds]
    takes = may_go & np.array([room.slots(kind) > 0 for kind in kinds])
    for resource in np.flatnonzero(requests.any(axis=0)).tolist():
        asks = requests[:, resource] > 0
        nodes = takes[asks].any(axis=0)
        needed = int(number[asks] @ requests[asks, resource])
        headroom = int(room.headroom[nodes, resource].sum())
        if headroom < needed:
            return TooLittle(resource, needed, headroom, int(number[asks].sum()), int(nodes.sum()))
    return None
