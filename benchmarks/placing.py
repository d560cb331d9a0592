"""Places many VMs on many nodes quickly, about as a scheduler with a little choice would."""

import numpy as np

from rebalancer.scheduling.state import BoolArray, IntArray

_ROUNDS = 12
_DRAWS = 16


class Room:
    """What is left on each node. Axes: n nodes, k classes, r resources, v VMs.

    Each VM goes to the emptier of two random nodes that take it.
    """

    def __init__(self, rng: np.random.Generator, capacity: IntArray, allowed: BoolArray) -> None:
        self._rng = rng
        self.capacity = capacity
        self.allowed = allowed
        self.free = capacity.copy()

    def used(self, resource: int) -> int:
        return int((self.capacity - self.free)[:, resource].sum())

    def take(self, nodes: IntArray, requests: IntArray) -> None:
        np.subtract.at(self.free, nodes, requests)

    def give_back(self, nodes: IntArray, requests: IntArray) -> None:
        np.add.at(self.free, nodes, requests)

    def place(self, requests: IntArray, classes: IntArray) -> IntArray:
        """(v,) the node of each VM, -1 where no node takes it."""
        nodes = np.full(len(requests), -1, np.int64)
        waiting = np.arange(len(requests))
        for _ in range(_ROUNDS):
            nodes[waiting] = self._place_some(requests[waiting], classes[waiting])
            waiting = waiting[nodes[waiting] < 0]
        self._place_one_by_one(waiting, requests, classes, nodes)
        return nodes

    def _place_some(self, requests: IntArray, classes: IntArray) -> IntArray:
        """All VMs draw nodes at the same time; those that come first in the order get the room."""
        count = len(requests)
        drawn = self._rng.integers(0, len(self.free), (count, _DRAWS))
        takes = self.allowed[classes[:, None], drawn]
        takes &= (self.free[drawn] >= requests[:, None, :]).all(axis=2)
        takes &= np.cumsum(takes, axis=1) <= 2
        share = np.where(takes, (self.free / self.capacity)[drawn, 1], -1)
        chosen = drawn[np.arange(count), share.argmax(axis=1)]
        which = np.flatnonzero(takes.any(axis=1))
        which = which[np.argsort(chosen[which], kind="stable")]
        accepted = which[self._fits_together(chosen[which], requests[which])]
        self.take(chosen[accepted], requests[accepted])
        nodes = np.full(count, -1, np.int64)
        nodes[accepted] = chosen[accepted]
        return nodes

    def _fits_together(self, nodes: IntArray, requests: IntArray) -> BoolArray:
        """(v,) which of the VMs, ordered by node, fit beside all those before them."""
        total = np.cumsum(requests, axis=0)
        _, start, length = np.unique(nodes, return_index=True, return_counts=True)
        before = np.repeat((total - requests)[start], length, axis=0)
        return np.asarray((total - before <= self.free[nodes]).all(axis=1), np.bool_)

    def _place_one_by_one(
        self, waiting: IntArray, requests: IntArray, classes: IntArray, nodes: IntArray
    ) -> None:
        hopeless: set[tuple[int, ...]] = set()
        for vm in waiting:
            kind = (int(classes[vm]), *map(int, requests[vm]))
            if kind in hopeless:
                continue
            takes = self.allowed[classes[vm]] & (self.free >= requests[vm]).all(axis=1)
            homes = np.flatnonzero(takes)
            if not len(homes):
                hopeless.add(kind)
                continue
            pair = self._rng.choice(homes, 2)
            nodes[vm] = pair[(self.free[pair, 1] / self.capacity[pair, 1]).argmax()]
            self.free[nodes[vm]] -= requests[vm]
