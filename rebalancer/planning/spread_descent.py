"""Evens out load by steepest descent, and goes on from plans that are undone in places."""

import numpy as np

from rebalancer.planning.problem import Moves
from rebalancer.planning.spread_draft import Draft
from rebalancer.planning.spread_problem import LEAST_GAIN, SpreadProblem
from rebalancer.planning.spread_steps import Step, best_move, best_pair

_UNDONE_AT_ONCE = 12


def descend(problem: SpreadProblem, repairs: int) -> Moves:
    """Moves that lower the squared deviation by more than they are worth; maybe none.

    `repairs`: how often some random moves are undone and the descent goes on from there; equal
    problems give equal plans.
    """
    best = Draft(problem)
    _run(best)
    rng = np.random.default_rng(0)
    for _ in range(repairs if best.targets else 0):
        trial = best.copy()
        movers = rng.permutation(best.moved)
        for mover in movers[: _undone_of(len(movers))]:
            trial.move(int(mover), int(problem.mover_node[mover]))
        _run(trial)
        if trial.objective < best.objective - LEAST_GAIN:
            best = trial
    return best.moves


def _run(draft: Draft) -> None:
    """Takes the step with the best change per move for as long as there is one.

    Pairs take long to look for and get worse as it goes on, as single moves do: what was found
    last tells when to look again.
    """
    barred = np.zeros(draft.problem.mover_count, np.bool_)
    last_pair = -np.inf
    while True:
        step = best_move(draft, barred)
        if last_pair / 2 < step.change or step.change > -LEAST_GAIN:
            pair = best_pair(draft, barred)
            last_pair = min(pair.change, 0)
            if pair.change / 2 < step.change:
                step = pair
        if step.change > -LEAST_GAIN:
            return
        if _take(draft, step):
            barred[:] = False
        else:
            barred[step.moves[0][0]] = True


def _take(draft: Draft, step: Step) -> bool:
    """All its moves, or none: whether they have an order, and are as good as they looked."""
    if len(step.moves) == 1:
        return draft.move(*step.moves[0])
    before = draft.copy()
    moved = all(draft.move(mover, target) for mover, target in step.moves)
    if moved and draft.objective < before.objective - LEAST_GAIN:
        return True
    draft.restore(before)
    return False


def _undone_of(move_count: int) -> int:
    """With all of them undone, it would only find the same plan once more."""
    return _UNDONE_AT_ONCE if move_count > _UNDONE_AT_ONCE else (move_count + 1) // 2
