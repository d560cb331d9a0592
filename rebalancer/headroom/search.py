"""Exact search for places for all items at once, with a limit in steps instead of time."""

from collections.abc import Sequence

import numpy as np

from rebalancer.headroom.placing import Placing
from rebalancer.headroom.room import Item, Loss, Room

_MOST_ITEMS = 200
"""More are not searched: a guess; the search goes as deep as there are items."""


class WorkLimitError(Exception):
    """The search was given up: nothing is known."""


class Work:
    """Steps that may still be taken; one is to look at one node for one item."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def share(self, steps: int) -> "Work":
        """So many of them, or what is left."""
        given = Work(min(steps, self.steps))
        self.steps -= given.steps
        return given

    def give_back(self, other: "Work") -> None:
        self.steps += other.steps

    def step(self) -> None:
        """Raises: WorkLimitError."""
        if self.steps <= 0:
            raise WorkLimitError
        self.steps -= 1


def search(room: Room, loss: Loss, items: Sequence[Item], work: Work) -> Placing | None:
    """A placing of all of them; None if there is none.

    Raises: WorkLimitError.
    """
    if len(items) > _MOST_ITEMS:
        raise WorkLimitError
    ordered = sorted(items, key=lambda item: (len(room.candidates(item.kind)), item))
    found = _Search(Placing(room, loss), ordered, work)
    return found.placing if found.places_from(0, 0) else None


class _Search:
    def __init__(self, placing: Placing, ordered: Sequence[Item], work: Work) -> None:
        self.placing = placing
        self._ordered = ordered
        self._work = work
        self._alike = _Alike(placing, ordered)

    def places_from(self, position: int, start: int) -> bool:
        """Whether all items from that one on have places beside those before them.

        `start`: the first candidate for it to try, if it is equal to the one before.

        Raises: WorkLimitError.
        """
        if position == len(self._ordered):
            return True
        item = self._ordered[position]
        placing = self.placing
        candidates = placing.room.candidates(item.kind)
        tried = set()
        # Equal items are placed in the order of their candidates; any other order is the same.
        if not position or self._ordered[position - 1] != item:
            start = 0
        for at in range(start, len(candidates)):
            self._work.step()
            node = candidates[at]
            if not placing.has_room(item.kind, node) or placing.keeps_off(item, node):
                continue
            look = self._alike.look(node)
            if look in tried:
                continue
            tried.add(look)
            placing.take(item, node)
            if self.places_from(position + 1, at):
                return True
            placing.give_back()
        return False


class _Alike:
    """Which nodes are the same to all of these items."""

    def __init__(self, placing: Placing, items: Sequence[Item]) -> None:
        self._placing = placing
        room = placing.room
        kinds = sorted({item.kind for item in items})
        masks = np.array([room.allowed(kind) for kind in kinds]).reshape(len(kinds), -1)
        self._allowed = [column.tobytes() for column in np.packbits(masks, axis=0).T]
        self._terms = [
            (number, room.term(number).domain, _sizes(room.term(number).domain))
            for number in sorted({term for item in items for term in (*item.holds, *item.meant)})
        ]

    def look(self, node: int) -> tuple[object, ...]:
        """Equal for nodes that could change places in whatever is still to be placed."""
        return (
            self._allowed[node],
            tuple(self._placing.headroom(node)),
            *(
                # Domains of one node each, such as hosts, are the same if what is there is.
                (
                    domain[node] if sizes.get(domain[node], 0) != 1 else None,
                    self._placing.is_in(number, node, is_holder=True),
                    self._placing.is_in(number, node, is_holder=False),
                )
                for number, domain, sizes in self._terms
            ),
        )


def _sizes(domain: Sequence[int]) -> dict[int, int]:
    numbers, counts = np.unique(np.array(domain, np.int64), return_counts=True)
    return dict(zip(numbers.tolist(), counts.tolist(), strict=True))
