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


def shortage(room: Room, loss: Loss, items: Sequence[Item]) -> TooFewSlots | TooLittle | None:
    """The first such reason, None where none of them tells."""
    counts = Counter(item.kind for item in items)
    for kinds, may_go in _groups(room, loss, sorted(counts)):
        number = np.array([counts[kind] for kind in kinds])
        requests = room.requests[kinds]
        for kind, request in zip(kinds, requests, strict=True):
            as_large = (requests >= request).all(axis=1)
            nodes = _any_of(may_go, as_large)
            # Sums of several nodes' slots may pass what 64 bits hold if nothing is asked for.
            slots = int(np.minimum(room.slots(kind)[nodes], number.sum()).sum())
            if slots < number[as_large].sum():
                smallest = requests[as_large].min(axis=0)
                return TooFewSlots(smallest, int(number[as_large].sum()), slots, int(nodes.sum()))
        takes = np.array(
            [mask & (room.slots(k) > 0) for k, mask in zip(kinds, may_go, strict=True)]
        )
        for resource in np.flatnonzero(requests.any(axis=0)):
            asks = requests[:, resource] > 0
            nodes = _any_of(takes, asks)
            needed = int(number[asks] @ requests[asks, resource])
            headroom = int(np.maximum(room.headroom[nodes, resource], 0).sum())
            if headroom < needed:
                return TooLittle(
                    int(resource), needed, headroom, int(number[asks].sum()), int(nodes.sum())
                )
    return None


def _groups(room: Room, loss: Loss, kinds: list[int]) -> Iterator[tuple[list[int], BoolArray]]:
    """Kinds, and where each may go, (k, n): first all of them, then those that go to no more
    nodes than one of them.
    """
    may_go = np.array([room.allowed[kind] for kind in kinds]) & loss.is_left
    yield kinds, may_go
    masks, codes = np.unique(np.packbits(may_go, axis=1), axis=0, return_inverse=True)
    if len(masks) == 1:
        return
    for mask in masks:
        members = np.flatnonzero(((masks | mask) == mask).all(axis=1)[codes.reshape(-1)])
        yield [kinds[i] for i in members], may_go[members]


def _any_of(may_go: BoolArray, which: BoolArray) -> BoolArray:
    return np.asarray(may_go[which].any(axis=0), np.bool_)
