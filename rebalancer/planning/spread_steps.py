"""The best next move for a draft, and the best two moves of which one makes way for the other."""

from typing import NamedTuple

import numpy as np

from rebalancer.planning.problem import Moves
from rebalancer.planning.spread_draft import Draft, lacks_room
from rebalancer.planning.spread_problem import LEAST_GAIN, FloatArray
from rebalancer.scheduling.state import BoolArray, IntArray

_ROWS_AT_ONCE = 256
_MOST_KINDS = 64
_MOST_PAIRS = 1 << 18
"""Of two movers looked at together: some that it is best to get rid of, and all others."""


class Step(NamedTuple):
    """Moves, in their order, and what they add to the objective."""

    moves: Moves
    change: float


_NONE = Step((), np.inf)


def best_move(draft: Draft, barred: BoolArray) -> Step:
    """`barred`: (m,) movers to leave alone."""
    moved = draft.moved
    leaving = np.where(barred, np.inf, draft.leaving())
    if len(moved) >= draft.problem.max_moves:
        leaving[~_among(moved, leaving)] = np.inf
    step = _NONE
    if len(leaving):
        changes = leaving + draft.best[draft.kind]
        while _made_certain(draft, changes):
            changes = leaving + draft.best[draft.kind]
        mover = int(np.argmin(changes))
        step = Step(((mover, int(draft.target[draft.kind[mover]])),), float(changes[mover]))
    back = np.where(barred[moved], np.inf, draft.going_back(moved))
    if back.min(initial=np.inf) < step.change:
        mover = int(moved[np.argmin(back)])
        step = Step(((mover, int(draft.problem.mover_node[mover])),), float(back.min()))
    return step


def best_pair(draft: Draft, barred: BoolArray) -> Step:
    """The best move to a node together with one off it, to the best target or in exchange."""
    leaving = np.where(barred, np.inf, draft.leaving())
    movers = _worth_moving(draft, leaving)
    if not len(movers) or len(draft.targets) >= draft.problem.max_moves:
        return _NONE
    pairs = _Pairs(draft, leaving, movers)
    exchange, aside = pairs.exchanges(), pairs.stepping_aside()
    while _made_certain(draft, aside.min(axis=0)):
        aside = pairs.stepping_aside()
    if exchange.min() < aside.min():
        return pairs.step(exchange, draft.node[movers][:, None])
    return pairs.step(aside, draft.target[draft.kind])


def _among(movers: IntArray, per_mover: FloatArray) -> BoolArray:
    among = np.zeros(len(per_mover), np.bool_)
    among[movers] = True
    return among


def _made_certain(draft: Draft, changes: FloatArray) -> bool:
    """Whether the best of these, (m,), was only an optimistic guess; then it and those that
    follow are known better now.
    """
    doubtful = draft.is_stale[draft.kind]
    first = np.argmin(changes)
    if not doubtful[first] or changes[first] > -LEAST_GAIN:
        return False
    movers = np.flatnonzero(doubtful & (changes < -LEAST_GAIN))
    if len(movers) > _ROWS_AT_ONCE:
        movers = movers[np.argpartition(changes[movers], _ROWS_AT_ONCE)[:_ROWS_AT_ONCE]]
    draft.look_everywhere(np.unique(draft.kind[movers]))
    return True


def _worth_moving(draft: Draft, leaving: FloatArray) -> IntArray:
    """The one mover of each kind that it is best to get rid of; of those the best."""
    order = np.lexsort((leaving, draft.kind))
    _, first = np.unique(draft.kind[order], return_index=True)
    movers = order[first]
    movers = movers[np.isfinite(leaving[movers])]
    most = max(1, min(_MOST_KINDS, _MOST_PAIRS // max(1, len(leaving))))
    return np.asarray(movers[np.argsort(leaving[movers], kind="stable")[:most]], np.int64)


class _Pairs:
    """Some movers, each with all others as the one on its target that makes way.

    Axes: p movers that come, m movers that make way.
    """

    def __init__(self, draft: Draft, leaving: FloatArray, movers: IntArray) -> None:
        problem, node = draft.problem, draft.node
        self._draft = draft
        self._movers = movers
        self._load = draft.load[draft.kind[movers]]
        self._other_load = problem.mover_load.astype(np.float64)
        share = draft.share[node]
        # What an arrival adds, and the two loads meeting on the node, of which one has left.
        slope = 2 * share * draft.deviation[node] - 2 * share**2 * self._other_load
        both = self._load @ slope.T + self._load**2 @ (share**2).T
        both += leaving[movers][:, None] + leaving
        classes = problem.mover_class[movers]
        both += draft.per_cost * problem.charge[classes[:, None], node]
        both[~(problem.allowed[classes[:, None], node] & problem.counts[node])] = np.inf
        both[node[movers][:, None] == node] = np.inf
        if len(draft.targets) + 1 >= problem.max_moves:
            stays = ~_among(draft.moved, leaving)
            both[stays[movers][:, None] & stays] = np.inf
        stayed = (node == problem.mover_node)[:, None]
        released = np.where(stayed, problem.mover_release, problem.mover_request)
        both[lacks_room(problem.mover_request[movers], draft.headroom[node] + released)] = np.inf
        self._both = both

    def stepping_aside(self) -> FloatArray:
        """(p, m) what it adds if the other first goes to the best target of its kind."""
        draft = self._draft
        changes = self._both + draft.best[draft.kind]
        target = draft.target[draft.kind]
        changes[draft.node[self._movers][:, None] == target] = np.inf
        changes[:, draft.node == target] = np.inf
        return np.asarray(changes, np.float64)

    def exchanges(self) -> FloatArray:
        """(p, m) what it adds if they change places."""
        draft, problem = self._draft, self._draft.problem
        source = draft.node[self._movers]
        share = draft.share[source]
        slope = 2 * share * draft.deviation[source] - 2 * share**2 * self._load
        changes = self._both + slope @ self._other_load.T + share**2 @ self._other_load.T**2
        classes = problem.mover_class
        changes += draft.per_cost * problem.charge[classes, source[:, None]]
        changes[~problem.allowed[classes, source[:, None]]] = np.inf
        # One of the two goes first; that the other one does is left out.
        changes[lacks_room(problem.mover_request, draft.headroom[source]).T] = np.inf
        return np.asarray(changes, np.float64)

    def step(self, changes: FloatArray, others_target: IntArray) -> Step:
        """`others_target`: (p, m) or (m,) where the other goes."""
        which, other = map(int, np.unravel_index(np.argmin(changes), changes.shape))
        way = np.broadcast_to(others_target, changes.shape)[which, other]
        moves = ((other, int(way)), (int(self._movers[which]), int(self._draft.node[other])))
        return Step(moves, float(changes[which, other]))
