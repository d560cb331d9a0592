"""The fit problem by exhaustive search: the reference that the planner is measured against."""

import heapq

import numpy as np

from rebalancer.planning.problem import FitProblem


def cheapest(problem: FitProblem) -> int | None:
    """Cost of the cheapest sequence of moves, detours allowed, after which the item fits.

    Dijkstra over all placements of the movers; None when no sequence gets there. A mover that has
    come back to its node needs what it needs anywhere, so it is told apart: node plus node count.
    """
    n = problem.node_count
    start = tuple(map(int, problem.mover_node))
    best = {start: 0}
    heap = [(0, start)]
    while heap:
        cost, places = heapq.heappop(heap)
        if cost > best[places]:
            continue
        headroom = problem.headroom.copy()
        for mover, place in enumerate(places):
            if place != start[mover]:
                headroom[start[mover]] += problem.mover_release[mover]
                headroom[place % n] -= problem.mover_request[mover]
        if (problem.landing & problem.fits(problem.request, headroom)).any():
            return cost
        for mover, place in enumerate(places):
            request = problem.mover_request[mover]
            k = problem.mover_class[mover]
            for target in np.flatnonzero(problem.fits(request, headroom) & problem.allowed[k]):
                if target == place % n:
                    continue
                arrived = int(target) + (n if target == start[mover] else 0)
                after = (*places[:mover], arrived, *places[mover + 1 :])
                dearer = cost + int(problem.mover_cost[mover] + problem.charge[k, target])
                if dearer < best.get(after, dearer + 1):
                    best[after] = dearer
                    heapq.heappush(heap, (dearer, after))
    return None
