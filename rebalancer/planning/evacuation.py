"""Emptying a node as a fit problem: an item that lands there once enough of its VMs have left.

The item asks for a made-up resource of which each VM on the node gives back one piece when it
leaves, and which other nodes have in plenty. So the bounds, the searches and the orders of the fit
problem serve here as well, with other VMs that make room elsewhere.
"""

from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from rebalancer.planning.context import PlanningContext
from rebalancer.planning.fit import SecondStage, solve_wherever_pods_are
from rebalancer.planning.movers import Movers, move_problem, resources_in_play
from rebalancer.planning.ordering import dependencies
from rebalancer.planning.problem import INFINITE, FitProblem, MoveProblem, Moves, Outcome
from rebalancer.scheduling.state import BoolArray


class Evacuation(NamedTuple):
    """What is known about emptying a node.

    `outcome` is about `leaving` VMs, the most for which a plan was found; with `is_most` it is
    proven that no more can leave.
    """

    problem: FitProblem
    outcome: Outcome
    leaving: int
    is_most: bool


def evacuate(
    node: int,
    movers: Movers,
    closed: BoolArray,
    context: PlanningContext,
    second_stage: SecondStage,
) -> Evacuation:
    """The cheapest way for as many movers as possible to leave the node.

    `closed`: (n,) the nodes that nobody is to be moved to, this one among them.
    """
    strict = _problem(node, movers, closed, context, ignores_placement=False)
    relaxed = _problem(node, movers, closed, context, ignores_placement=True)

    def attempt(count: int) -> Evacuation:
        problem = _asking(strict, count)
        outcome = solve_wherever_pods_are(problem, _asking(relaxed, count), second_stage)
        return Evacuation(problem, outcome, count, is_most=False)

    here = strict.mover_class[np.flatnonzero(strict.mover_node == node)]
    best = Evacuation(_asking(strict, 0), Outcome(None, INFINITE), 0, is_most=False)
    too_many = int(np.any(relaxed.allowed, axis=1)[here].sum()) + 1
    next_count, is_most = too_many - 1, True
    while too_many - best.leaving > 1:
        tried = attempt(next_count)
        if tried.outcome.solution is not None:
            best = tried
        else:
            too_many, is_most = next_count, tried.outcome.is_proven
        next_count = (best.leaving + too_many) // 2
    return best._replace(is_most=is_most, outcome=_spread_out(best.problem, best.outcome))


def _problem(
    node: int,
    movers: Movers,
    closed: BoolArray,
    context: PlanningContext,
    *,
    ignores_placement: bool,
) -> FitProblem:
    """The made-up resource is the last."""
    resources = resources_in_play(movers)
    base = move_problem(movers, context, resources, ignores_placement=ignores_placement)
    landing = np.arange(base.node_count) == node
    piece = (base.mover_node == node).astype(np.int64)
    plenty = np.where(landing, 0, piece.sum())
    asked = np.zeros(len(resources) + 1, np.int64)
    asked[-1] = 1
    with_pieces = {
        "headroom": np.column_stack([base.headroom, plenty]),
        "mover_request": np.column_stack([base.mover_request, piece]),
        "mover_release": np.column_stack([base.mover_release, piece]),
        "allowed": base.allowed & ~closed,
    }
    return FitProblem(**(base.fields() | with_pieces), request=asked, landing=landing)


def _asking(problem: FitProblem, count: int) -> FitProblem:
    """The limit on moves is for those besides the ones off the node."""
    return replace(problem, request=problem.request * count, max_moves=problem.max_moves + count)


def _spread_out(problem: FitProblem, outcome: Outcome) -> Outcome:
    """With each move that waits for none going where most is left, at no higher charge.

    The searches fill nodes up, which is best for what is to fit on one, and worst for evacuees: a
    node that is full has nothing left for the next failure.
    """
    solution = outcome.solution
    if solution is None or any(dependencies(problem, solution.moves)):
        return outcome
    moves = _emptiest_targets(problem, solution.moves)
    if moves is None or problem.cost(moves) > solution.cost:
        return outcome
    return outcome._replace(solution=solution._replace(moves=moves))


def _emptiest_targets(problem: MoveProblem, moves: Moves) -> Moves | None:
    """Largest first; None where that order leaves one without a target."""
    headroom = problem.headroom.copy()
    whole = np.maximum(problem.headroom.max(axis=0), 1)
    chosen = {}
    for mover, target in sorted(moves, key=lambda m: (*(-problem.mover_request[m[0]]), m)):
        charge = problem.charge[problem.mover_class[mover]]
        homes = problem.homes(mover, headroom) & (charge <= charge[target])
        if not homes.any():
            return None
        asked = problem.mover_request[mover] > 0
        left = ((headroom - problem.mover_request[mover]) / whole)[:, asked].min(axis=1)
        emptiest = int(np.argmax(np.where(homes, left, -np.inf)))
        headroom[emptiest] -= problem.mover_request[mover]
        chosen[mover] = emptiest
    return tuple((mover, chosen[mover]) for mover, _ in moves)
