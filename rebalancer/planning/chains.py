"""Movers without a home: making room for one of them is the fit problem again, one level down."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from rebalancer.planning.placing import PlacingLimitError, place
from rebalancer.planning.problem import FitProblem, Moves, Solution


def home_problem(problem: FitProblem, mover: int, leaving: Sequence[int]) -> FitProblem:
    """That of making room for the mover anywhere but on its own node, where the item is to land.

    Whoever moves elsewhere in a plan that clears the node of `leaving`, or of some of them, solves
    it: the node is taken to have been cleared already, and the item to be there.
    """
    node = int(problem.mover_node[mover])
    headroom = problem.headroom.copy()
    headroom[node] += problem.mover_release[list(leaving)].sum(axis=0) - problem.request
    landing = problem.allowed[problem.mover_class[mover]].copy()
    landing[node] = False
    return replace(
        problem,
        request=problem.mover_request[mover],
        landing=landing,
        headroom=headroom,
        max_moves=problem.max_moves - 1,
    )


def joined(
    problem: FitProblem, movers: Sequence[int], landing: int, homes: Mapping[int, Solution]
) -> Moves | None:
    """Moves of all these movers off the landing node, each into room that is there by then.

    `homes`: how to make room for those that have no home, each looked at by itself. None where
    these are in each other's way.
    """
    moves: list[tuple[int, int]] = []
    for mover in movers:
        if mover in homes:
            moves += [*homes[mover].moves, (mover, homes[mover].node)]
    others = [mover for mover in movers if mover not in homes]
    moved = [*(mover for mover, _ in moves), *others]
    if len(moved) > min(problem.max_moves, len(set(moved))):
        return None
    headroom = problem.headroom.copy()
    for step in problem.steps(tuple(moves)):
        request = problem.mover_request[step.mover]
        if not problem.fits(request, headroom[step.target]):
            return None
        headroom[step.target] -= request
        headroom[step.source] += step.release
    left = headroom[landing] + problem.mover_release[others].sum(axis=0)
    if not problem.fits(problem.request, left):
        return None
    try:
        placed = place(replace(problem, headroom=headroom), others, landing)
    except PlacingLimitError:
        return None
    return None if placed is None else (*moves, *placed)
