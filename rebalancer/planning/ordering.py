"""An order in which moves can be carried out one after the other, and what each must wait for."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from rebalancer.planning.problem import FitProblem, Moves
from rebalancer.scheduling.state import IntArray

Slot = tuple[int, int]
"""A place for one mover of a kind: (kind, node)."""

_MAX_STATES = 20_000
"""States of one search before it is given up; ten moves have about a thousand."""


class OrderingLimitError(Exception):
    """The search for an order was given up."""

    def __init__(self) -> None:
        super().__init__("the search for an order of the moves was too long")


def find_order(
    problem: FitProblem,
    kinds: IntArray,
    movers: Sequence[int],
    slots: Counter[Slot],
    landing: int,
) -> Moves | None:
    """Assigns the movers to the slots of their kind so that each finds room when its turn comes.

    Each move first takes room at its target and then frees its source. Exact: every order and
    assignment is tried, states seen before but once. Moves off the landing node come first where
    there is a choice.

    Raises: OrderingLimitError.
    """
    headroom = problem.headroom.copy()
    left = Counter(slots)
    remaining = sorted(movers, key=lambda i: (problem.mover_node[i] != landing, i))
    order: list[tuple[int, int]] = []
    dead_ends: set[tuple[frozenset[int], frozenset[tuple[Slot, int]]]] = set()

    def search() -> bool:
        if not remaining:
            return True
        state = frozenset(remaining), frozenset((+left).items())
        if state in dead_ends:
            return False
        if len(dead_ends) >= _MAX_STATES:
            raise OrderingLimitError
        for mover in tuple(remaining):
            request, release = problem.mover_request[mover], problem.mover_release[mover]
            source, kind = int(problem.mover_node[mover]), int(kinds[mover])
            for slot in sorted(slot for slot, count in left.items() if count and slot[0] == kind):
                target = slot[1]
                if target == source or not problem.fits(request, headroom[target]):
                    continue
                headroom[target] -= request
                headroom[source] += release
                left[slot] -= 1
                remaining.remove(mover)
                order.append((mover, target))
                if search():
                    return True
                order.pop()
                remaining.append(mover)
                remaining.sort(key=lambda i: (problem.mover_node[i] != landing, i))
                left[slot] += 1
                headroom[target] += request
                headroom[source] -= release
        dead_ends.add(state)
        return False

    return tuple(order) if search() else None


def dependencies(problem: FitProblem, moves: Moves) -> tuple[tuple[int, ...], ...]:
    """For each move, the indexes of the earlier ones that it waits for: just enough to have room.

    A target must have room for all moves into it that come earlier in the order, whether they
    have ended or not, but only counts on what the moves it waits for have freed. So whatever
    starts first, and however long each takes, no node is ever overfilled: of the moves into a
    node that are under way, the last in the order has accounted for all the others.
    """
    waits = []
    for index, (mover, target) in enumerate(moves):
        request = problem.mover_request[mover]
        arrived = sum(
            (problem.mover_request[m] for m, t in moves[:index] if t == target),
            start=np.zeros_like(request),
        )
        room = problem.headroom[target] - arrived
        waited: list[int] = []
        for earlier, (m, _) in enumerate(moves[:index]):
            if problem.fits(request, room):
                break
            if problem.mover_node[m] == target:
                room = room + problem.mover_release[m]
                waited.append(earlier)
        waits.append(tuple(waited))
    return tuple(waits)
