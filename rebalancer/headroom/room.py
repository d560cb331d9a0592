"""Room for pods to be started, without any word of Kubernetes.

Axes: n nodes, k kinds of items, r resources. Items of one kind need the same and may go to the same
nodes as far as each item alone is concerned.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from rebalancer.scheduling.state import BoolArray, IntArray

_UNBOUNDED = 2**40
"""Stands for as many as one likes, and can be added up."""


class Item(NamedTuple):
    """What is to be placed."""

    kind: int
    holds: tuple[int, ...] = ()
    """Terms that keep it out of every domain in which something is that they mean."""
    meant: tuple[int, ...] = ()
    """Terms that mean it: they keep it out of every domain in which something holds them."""


class Term(NamedTuple):
    """Keeps what holds it and what it means in different domains."""

    domain: list[int]
    """Of each node; -1 for none, where it keeps nothing apart."""
    holders: IntArray
    """Nodes of what holds it today."""
    meant: IntArray
    """Nodes of what it means today."""


class There(NamedTuple):
    """How many hold a term today, or are meant by it."""

    on_node: Counter[int]
    in_domain: Counter[int]


class Room:
    """What does not depend on what is lost.

    Args:
        headroom: (n, r); negative where a node is over-committed.
        allocatable: (n, r)
        requests: (k, r)
        allowed: (n,) masks of where items may go if there is room, each different from the others.
        allowed_of: (k,) the number of each kind's mask.
        term: a term by its number.
    """

    def __init__(
        self,
        headroom: IntArray,
        allocatable: IntArray,
        requests: IntArray,
        allowed: Sequence[BoolArray],
        allowed_of: Sequence[int],
        term: Callable[[int], Term],
    ) -> None:
        self.headroom = headroom
        self.requests = requests
        self.allowed_of = allowed_of
        self._allowed = allowed
        self.term = term
        self.rows: list[list[int]] = headroom.tolist()
        self.needs: list[list[tuple[int, int]]] = [
            [(r, amount) for r, amount in enumerate(row) if amount] for row in requests.tolist()
        ]
        """Of each kind the resources it asks for, by index, and how much of them."""
        self._allocatable = allocatable
        self._candidates: dict[int, list[int]] = {}
        self._slots: dict[bytes, IntArray] = {}
        self._hosts: dict[int, IntArray] = {}
        self._there: dict[tuple[int, bool], There] = {}

    @property
    def node_count(self) -> int:
        return len(self.headroom)

    @cached_property
    def _scale(self) -> IntArray:
        """(r,) what the largest node has: resources are compared by their share of that."""
        scale: IntArray = self._allocatable.max(axis=0, initial=1)
        return scale

    @cached_property
    def size(self) -> list[float]:
        """(k,) what an item needs in shares of the largest node, all resources together."""
        sizes: list[float] = (self.requests / self._scale).sum(axis=1).tolist()
        return sizes

    def allowed(self, kind: int) -> BoolArray:
        """(n,) where items of the kind may go if there is room."""
        return self._allowed[self.allowed_of[kind]]

    @cached_property
    def is_within(self) -> BoolArray:
        """(masks, masks) whether one, first axis, allows no node that the other does not."""
        masks = np.array(self._allowed).reshape(len(self._allowed), -1)
        return np.array([(masks <= mask).all(axis=1) for mask in masks], np.bool_).T

    def candidates(self, kind: int) -> list[int]:
        """Nodes that take an item while nothing is placed yet, the tightest fit first."""
        found = self._candidates.get(kind)
        if found is None:
            nodes = np.flatnonzero(self.allowed(kind) & (self.slots(kind) > 0))
            left_over = (self.headroom[nodes] - self.requests[kind]) / self._scale
            order = np.argsort(left_over.sum(axis=1), kind="stable")
            found = self._candidates[kind] = nodes[order].tolist()
        return found

    def slots(self, kind: int) -> IntArray:
        """(n,) how many items of that size there is room for, wherever they may go."""
        request = self.requests[kind]
        found = self._slots.get(request.tobytes())
        if found is None:
            found = self._slots[request.tobytes()] = slots(request, self.headroom)
        return found

    def hosts(self, kind: int) -> IntArray:
        """Nodes that would take an item if they were empty."""
        found = self._hosts.get(kind)
        if found is None:
            has_room = slots(self.requests[kind], self._allocatable) > 0
            found = self._hosts[kind] = np.flatnonzero(self.allowed(kind) & has_room)
        return found

    def there(self, term: int, *, is_holder: bool) -> There:
        """What holds the term, or what it means."""
        found = self._there.get((term, is_holder))
        if found is None:
            domain, holders, meant = self.term(term)
            on_node = Counter((holders if is_holder else meant).tolist())
            in_domain = Counter[int]()
            for node, count in on_node.items():
                in_domain[domain[node]] += count
            found = self._there[term, is_holder] = There(on_node, in_domain)
        return found


def slots(request: IntArray, headroom: IntArray) -> IntArray:
    """(n,) how many of the request, (r,), fit into each row of the headroom, (n, r).

    A resource of which nothing is asked is not looked at, even when over-committed.
    """
    asked = np.flatnonzero(request)
    if not len(asked):
        return np.full(len(headroom), _UNBOUNDED)
    whole = headroom[:, asked] // request[asked]
    fitting: IntArray = np.maximum(whole.min(axis=1), 0)
    return fitting


class Loss:
    """Nodes that are gone."""

    def __init__(self, nodes: Sequence[int], node_count: int) -> None:
        self.nodes = frozenset(nodes)
        self.is_left = np.ones(node_count, np.bool_)
        self.is_left[list(self.nodes)] = False
