"""What has been placed so far after a loss, and the first node that takes an item."""

from collections import Counter
from functools import cached_property
from itertools import islice

from rebalancer.headroom.room import Item, Loss, Room


class Placing:
    """Items on nodes, on top of those that `base` has on nodes that are left."""

    def __init__(self, room: Room, loss: Loss, base: "Placing | None" = None) -> None:
        self.room = room
        self.loss = loss
        self.placed: list[tuple[Item, int]] = []
        """Without those of the base."""
        self._rows: dict[int, list[int]] = {}
        self._base_rows = base._rows if base else {}
        self._base_apart = base.placed_apart if base else []
        self._first: dict[int, int] = dict(base._first) if base else {}
        self._changes: dict[tuple[int, bool], Counter[int]] = {}

    @cached_property
    def placed_apart(self) -> list[tuple[Item, int]]:
        """Those that terms keep apart, once all is placed."""
        return [(item, node) for item, node in self.placed if item.holds or item.meant]

    def first_fit(self, item: Item) -> int | None:
        """The tightest of the nodes that took the item when all was empty, and still do.

        Only for a placing from which nothing is taken back.
        """
        kind = item.kind
        candidates = self.room.candidates(kind)
        at = self._first.get(kind, 0)
        while at < len(candidates) and not self.has_room(kind, candidates[at]):
            at += 1
        self._first[kind] = at
        for node in islice(candidates, at, None):
            if self.has_room(kind, node) and not self.keeps_off(item, node):
                return node
        return None

    def has_room(self, kind: int, node: int) -> bool:
        """For one of the kind's candidates."""
        if node in self.loss.nodes:
            return False
        row = self._rows.get(node) or self._base_rows.get(node)
        if row is None:
            return True
        for resource, amount in self.room.needs[kind]:  # noqa: SIM110 - the innermost loop
            if row[resource] < amount:
                return False
        return True

    def headroom(self, node: int) -> list[int]:
        """(r,)"""
        return self._rows.get(node) or self._base_rows.get(node) or self.room.rows[node]

    def keeps_off(self, item: Item, node: int) -> bool:
        """Whether a term keeps the item out of the node's domain."""
        return any(self.is_in(term, node, is_holder=False) for term in item.holds) or any(
            self.is_in(term, node, is_holder=True) for term in item.meant
        )

    def is_in(self, term: int, node: int, *, is_holder: bool) -> bool:
        """Whether something in the node's domain holds the term, or is meant by it."""
        domain = self.room.term(term).domain[node]
        if domain < 0:
            return False
        there = self.room.there(term, is_holder=is_holder).in_domain[domain]
        return there + self._changed(term, is_holder=is_holder)[domain] > 0

    def take(self, item: Item, node: int) -> None:
        self.placed.append((item, node))
        self._change(item, node, 1)

    def give_back(self) -> None:
        """Undoes the latest `take`."""
        self._change(*self.placed.pop(), -1)

    def _change(self, item: Item, node: int, count: int) -> None:
        row = self._rows.get(node)
        if row is None:
            row = self._rows[node] = self.headroom(node).copy()
        for resource, amount in self.room.needs[item.kind]:
            row[resource] -= count * amount
        for terms, is_holder in ((item.holds, True), (item.meant, False)):
            for term in terms:
                changed = self._changed(term, is_holder=is_holder)
                changed[self.room.term(term).domain[node]] += count

    def _changed(self, term: int, *, is_holder: bool) -> Counter[int]:
        """How many more than today hold the term, or are meant by it, by domain."""
        changed = self._changes.get((term, is_holder))
        if changed is None:
            domain = self.room.term(term).domain
            on_node = self.room.there(term, is_holder=is_holder).on_node
            changed = self._changes[term, is_holder] = Counter()
            for node in self.loss.nodes & on_node.keys():
                changed[domain[node]] -= on_node[node]
            for item, node in self._base_apart:
                terms = item.holds if is_holder else item.meant
                if term in terms and node not in self.loss.nodes:
                    changed[domain[node]] += 1
        return changed
