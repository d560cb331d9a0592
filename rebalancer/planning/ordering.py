"""An order in which moves can be carried out one after the other, and what each must wait for.

Where movers are in each other's way, one of them steps aside first: it makes a detour over a
node that is not its last, and so moves more than once.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from rebalancer.planning.problem import INFINITE, FitProblem, MoveProblem, Moves
from rebalancer.scheduling.state import IntArray

Slot = tuple[int, int]
"""A place for one mover of a kind: (kind, node)."""


class OrderingLimitError(Exception):
    """The search for an order was given up; none with a cost below `bound` exists."""

    def __init__(self, bound: float) -> None:
        super().__init__("the search for an order of the moves was too long")
        self.bound = bound


def find_order(
    problem: FitProblem,
    movers: Sequence[int],
    slots: Counter[Slot],
    landing: int,
    cost_limit: float,
    max_states: int,
) -> Moves | None:
    """The cheapest way to bring these movers to the slots of their kind, one move at a time.

    Each move first takes room at its target and then frees its source. Detours are made where
    there is no order without them, by any mover, and paid for; one that is not among `movers`
    comes back to its node. None if there is no such way below the cost limit. Moves off the
    landing node come first where there is a choice.

    Args:
        max_states: of the search before it is given up; ten moves without detours have about a
            thousand.

    Raises: OrderingLimitError.
    """
    return _Search(problem, movers, landing).run(slots, cost_limit, max_states)


def dependencies(problem: MoveProblem, moves: Moves) -> tuple[tuple[int, ...], ...]:
    """For each move, the indexes of the earlier ones that it waits for: just enough to have room.

    A target must have room for all moves into it that come earlier in the order, whether they
    have ended or not, but only counts on what the moves it waits for have freed. So whatever
    starts first, and however long each takes, no node is ever overfilled: of the moves into a
    node that are under way, the last in the order has accounted for all the others. A mover's
    next move waits for the one before.
    """
    steps = problem.steps(moves)
    waits = []
    for index, step in enumerate(steps):
        request = problem.mover_request[step.mover]
        arrived = sum(
            (problem.mover_request[s.mover] for s in steps[:index] if s.target == step.target),
            start=np.zeros_like(request),
        )
        room = problem.headroom[step.target] - arrived
        waited = {i for i, s in enumerate(steps[:index]) if s.mover == step.mover}
        waited = {max(waited)} if waited else waited
        for earlier in waited:
            if steps[earlier].source == step.target:
                room = room + steps[earlier].release
        for earlier, other in enumerate(steps[:index]):
            if problem.fits(request, room):
                break
            if other.source == step.target and earlier not in waited:
                room = room + other.release
                waited.add(earlier)
        waits.append(tuple(sorted(waited)))
    return tuple(waits)


class _State(NamedTuple):
    """All that matters of the moves made so far for those to come."""

    waiting: frozenset[int]
    """Movers that have not taken a slot yet."""
    aside: frozenset[tuple[int, int]]
    """(mover, node): on a detour, and where."""
    left: frozenset[tuple[Slot, int]]
    """Slots that are still empty, and how many of each."""
    returned: frozenset[int]
    """Movers that have come back, with what a target pod asks for."""
    vacated: int
    """The node that a mover has just stepped aside from, else -1."""


class _Stage(IntEnum):
    """What of a state is looked at next; a later stage waits until its least cost has its turn."""

    ARRIVALS = 0
    MAKING_WAY = 1
    """Detours off nodes where somebody has yet to arrive."""
    MAKING_SPOTS = 2
    """Detours off other nodes, which only serve further detours."""


class _Search:
    """A*: the costs of all arrivals are known from the start, so only detours add to them."""

    def __init__(self, problem: FitProblem, movers: Sequence[int], landing: int) -> None:
        self.problem = problem
        self.kinds = problem.kinds
        self.landing = landing
        self.leaving = frozenset(movers)
        self.arrivals_in_turn = sorted(movers, key=lambda i: (self._home(i) != landing, i))
        self.cheapest = int(problem.mover_cost.min())
        self.heap: list[tuple[float, int, int, _Stage, _State, Moves]] = []
        self.pushed = 0
        self.cost_limit = INFINITE

    def run(self, slots: Counter[Slot], cost_limit: float, max_states: int) -> Moves | None:
        self.cost_limit = cost_limit
        example = {int(self.kinds[i]): i for i in self.leaving}
        cost = sum(int(self.problem.mover_cost[i]) for i in self.leaving)
        cost += sum(n * self._charge(example[kind], node) for (kind, node), n in slots.items())
        start = _State(self.leaving, frozenset(), frozenset(slots.items()), frozenset(), -1)
        self._push(cost, _Stage.ARRIVALS, start, ())
        seen: dict[tuple[_Stage, _State], list[tuple[float, int]]] = {}
        while self.heap:
            least, _, _, stage, state, moves = heapq.heappop(self.heap)
            if self.pushed > max_states:
                raise OrderingLimitError(least)
            ways = seen.setdefault((stage, state), [])
            if any(cost <= least and count <= len(moves) for cost, count in ways):
                continue
            ways.append((least, len(moves)))
            headroom = self._headroom(moves)
            if self._is_done(state, headroom):
                return moves
            self._expand(least, stage, state, moves, headroom)
        return None

    def _home(self, mover: int) -> int:
        return int(self.problem.mover_node[mover])

    def _charge(self, mover: int, node: int) -> int:
        return int(self.problem.charge[self.problem.mover_class[mover], node])

    def _may_be_at(self, mover: int, node: int) -> bool:
        return bool(self.problem.allowed[self.problem.mover_class[mover], node])

    def _push(self, least: float, stage: _Stage, state: _State, moves: Moves) -> None:
        """`least`: what any plan that goes on from here costs at least."""
        strays = sum(mover not in self.leaving for mover, _ in state.aside)
        detours = stage is not _Stage.ARRIVALS
        fewest = len(moves) + len(state.waiting) + strays + detours
        if least < self.cost_limit and fewest <= self.problem.max_moves:
            self.pushed += 1
            heapq.heappush(self.heap, (least, -len(moves), self.pushed, stage, state, moves))

    def _headroom(self, moves: Moves) -> IntArray:
        headroom = self.problem.headroom.copy()
        for step in self.problem.steps(moves):
            headroom[step.target] -= self.problem.mover_request[step.mover]
            headroom[step.source] += step.release
        return headroom

    def _is_done(self, state: _State, headroom: IntArray) -> bool:
        is_settled = not state.waiting and not state.aside
        return is_settled and bool(self.problem.fits(self.problem.request, headroom[self.landing]))

    def _expand(
        self, least: float, stage: _Stage, state: _State, moves: Moves, headroom: IntArray
    ) -> None:
        if stage is _Stage.ARRIVALS:
            for mover, target, after in self._arrivals(state):
                # A detour may always be put off until just before the arrival that it is for.
                if state.vacated in {-1, target} and self._fits(mover, target, headroom):
                    self._push(least, _Stage.ARRIVALS, after, (*moves, (mover, target)))
            self._push(least + self.cheapest, _Stage.MAKING_WAY, state, moves)
            return
        # A later stage was put back by what its detours cost at least.
        cost = least - self.cheapest * stage
        for extra, mover, target, after in self._detours(stage, state, headroom):
            self._push(cost + extra, _Stage.ARRIVALS, after, (*moves, (mover, target)))
        if stage is _Stage.MAKING_WAY:
            self._push(least + self.cheapest, _Stage.MAKING_SPOTS, state, moves)

    def _fits(self, mover: int, target: int, headroom: IntArray) -> bool:
        return bool(self.problem.fits(self.problem.mover_request[mover], headroom[target]))

    def _arrivals(self, state: _State) -> Iterator[tuple[int, int, _State]]:
        """Moves after which a mover stays where it is."""
        aside = dict(state.aside)
        slots = sorted(state.left)
        for mover in self.arrivals_in_turn:
            if mover not in state.waiting:
                continue
            for (kind, target), count in slots:
                place = aside.get(mover, self._home(mover))
                if kind != self.kinds[mover] or target == place:
                    continue
                left = dict(state.left)
                left[kind, target] = count - 1
                yield (
                    mover,
                    target,
                    state._replace(
                        waiting=state.waiting - {mover},
                        aside=state.aside - {(mover, place)},
                        left=frozenset((slot, n) for slot, n in left.items() if n),
                        vacated=-1,
                    ),
                )
        for mover, place in sorted(state.aside):
            if mover not in self.leaving:
                yield (
                    mover,
                    self._home(mover),
                    state._replace(
                        aside=state.aside - {(mover, place)},
                        returned=state.returned | {mover},
                        vacated=-1,
                    ),
                )

    def _detours(
        self, stage: _Stage, state: _State, headroom: IntArray
    ) -> Iterator[tuple[int, int, int, _State]]:
        """Moves to a spot, with what they add to the cost: their own, and that of coming back."""
        aside = dict(state.aside)
        awaited = self._awaited(state)
        settled = self.leaving - state.waiting
        for mover in self._movers_at(awaited, stage, aside):
            if mover in settled:
                continue
            place, home = aside.get(mover, self._home(mover)), self._home(mover)
            comes_back = mover not in self.leaving
            if comes_back and not self._may_be_at(mover, home):
                continue
            spots = self.problem.fits(self.problem.mover_request[mover], headroom)
            spots &= self.problem.allowed[self.problem.mover_class[mover]]
            spots[place] = False
            for spot in map(int, np.flatnonzero(spots)):
                extra = int(self.problem.mover_cost[mover]) + self._charge(mover, spot)
                if comes_back and mover not in aside:
                    extra += int(self.problem.mover_cost[mover]) + self._charge(mover, home)
                yield (
                    extra,
                    mover,
                    spot,
                    state._replace(
                        aside=(state.aside - {(mover, place)}) | {(mover, spot)},
                        returned=state.returned - {mover},
                        vacated=place,
                    ),
                )

    def _awaited(self, state: _State) -> set[int]:
        """Nodes where somebody has yet to arrive who has a slot there or comes home."""
        nodes = {node for (_, node), _ in state.left}
        return nodes | {self._home(i) for i, _ in state.aside if i not in self.leaving}

    def _movers_at(self, awaited: set[int], stage: _Stage, aside: dict[int, int]) -> Iterable[int]:
        for mover in range(self.problem.mover_count):
            is_awaited = aside.get(mover, self._home(mover)) in awaited
            if is_awaited == (stage is _Stage.MAKING_WAY):
                yield mover
