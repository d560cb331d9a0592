"""Carries out a plan move by move; knows nothing of how it was made."""

from rebalancer.planning.problem import FitProblem, Moves


class NotExecutableError(Exception):
    """The moves cannot be carried out in their order, or do not make room."""


def replay(problem: FitProblem, moves: Moves, landing: int) -> None:
    """Each move takes its room at the target before it frees any at the source.

    Raises: NotExecutableError.
    """
    headroom = problem.headroom.copy()
    place = problem.mover_node.copy()
    for number, (mover, target) in enumerate(moves, start=1):
        request = problem.mover_request[mover]
        if target == place[mover] or not problem.allowed[problem.mover_class[mover], target]:
            raise NotExecutableError(f"move {number}: mover {mover} may not go to node {target}")
        if not problem.fits(request, headroom[target]):
            raise NotExecutableError(f"move {number}: node {target} has no room for mover {mover}")
        headroom[target] -= request
        is_first = place[mover] == problem.mover_node[mover]
        headroom[place[mover]] += problem.mover_release[mover] if is_first else request
        place[mover] = target
    if not problem.landing[landing] or not problem.fits(problem.request, headroom[landing]):
        raise NotExecutableError(f"in the end node {landing} has no room for the item")
