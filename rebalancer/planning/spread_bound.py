"""A lower bound of the squared deviation that any plan of so many moves can reach.

The nodes are taken apart: each decides for itself which of its movers leave and which kinds of
movers arrive, for a price of each departure and each arrival. Those of a kind add up to the price
of a move. Whatever they are, what is best for all nodes, less the price of as many moves as are
allowed, is not above what any plan reaches, since of each kind as many arrive as depart
(Lagrangian relaxation). A price is raised where there is more demand than that, and lowered
where there is less (subgradient ascent). Costs and the order of the moves are left out.
"""

import numpy as np

from rebalancer.planning.problem import Moves
from rebalancer.planning.spread_draft import Draft
from rebalancer.planning.spread_nodes import NodeChoices
from rebalancer.planning.spread_problem import LEAST_GAIN, FloatArray, SpreadProblem

_FIRST_STEP = 0.5
_PATIENCE = 8
"""Rounds without a better bound before steps are halved and start from the best prices."""
_INERTIA = 0.7
_LEAST_SHARE = 1e-3
"""Of the price of a move that an arrival or a departure has."""
_MOVE_PRICES = np.geomspace(0.01, 1.5, 14)
"""What to start from is tried, as shares of the mean gain of the plan's moves."""

_MOST_CELLS = 1 << 24
"""Of the table of kinds and nodes: each round takes seconds above that, and GiB of memory."""


def squared_deviation_bound(problem: SpreadProblem, plan: Moves, rounds: int = 150) -> float:
    """No plan of at most `max_moves` moves has a lower squared deviation.

    `plan`: the best that is known; prices are first guessed from it. More rounds bring the bound
    nearer to the least there is, but seldom all the way. It is 0, which says nothing, where there
    are too many kinds of movers, as with measured load in a large cluster.
    """
    before, after = problem.value, problem.after(plan).value
    if not problem.max_moves or not problem.mover_count:
        return before
    if (int(problem.kinds.max()) + 1) * problem.node_count > _MOST_CELLS:
        return 0.0
    gain = (before - after) / len(plan) if plan else before / problem.max_moves
    nodes = NodeChoices(problem)
    share = _arrival_shares(problem, nodes, plan)

    def bound_at(prices: FloatArray) -> tuple[float, FloatArray]:
        """And how much more is asked for than there is, of moves and of each kind's arrivals."""
        choice = nodes.at(prices[0], prices[1:])
        moves = choice.departures.sum() - problem.max_moves
        lack = (choice.arrivals - choice.departures).astype(np.float64)
        bound = choice.least - prices[0] * problem.max_moves
        return bound, np.concatenate([[moves], lack])

    starts = [np.concatenate([[price], price * share]) for price in _MOVE_PRICES * gain]
    best, best_prices = max(((bound_at(p)[0], p) for p in starts), key=lambda pair: pair[0])
    prices, step, waited = best_prices, _FIRST_STEP, 0
    direction = np.zeros(len(prices))
    for _ in range(rounds):
        bound, excess = bound_at(prices)
        if bound > best + LEAST_GAIN:
            best, best_prices, waited = bound, prices, 0
        elif (waited := waited + 1) == _PATIENCE:
            prices, step, waited, direction = best_prices, step / 2, 0, np.zeros(len(prices))
            continue
        direction = _INERTIA * direction + (1 - _INERTIA) * excess if direction.any() else excess
        square = direction @ direction
        if square == 0:
            break
        prices = _stepped(prices, step * max(after - bound, LEAST_GAIN) / square * direction)
    return max(0.0, best - LEAST_GAIN)


def _stepped(prices: FloatArray, step: FloatArray) -> FloatArray:
    """A valid set of prices near to where the step leads."""
    move = np.clip(prices[0] + step[0], 0.8 * prices[0], 1.25 * prices[0])
    arrival = np.clip(prices[1:] + step[1:], _LEAST_SHARE * move, (1 - _LEAST_SHARE) * move)
    return np.concatenate([[move], arrival])


def _arrival_shares(problem: SpreadProblem, nodes: NodeChoices, plan: Moves) -> FloatArray:
    """(k,) which part of a move's gain is had at the target, halfway through the plan."""
    departing, arriving = Draft(problem.after(plan[: len(plan) // 2])).gains()
    departure, arrival = np.zeros(nodes.kind_count), np.zeros(nodes.kind_count)
    np.maximum.at(departure, nodes.kind, departing)
    np.maximum.at(arrival, nodes.kind, arriving)
    share = arrival / np.maximum(departure + arrival, LEAST_GAIN)
    return np.asarray(np.clip(share, 0.1, 0.9), np.float64)
