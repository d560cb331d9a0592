"""Which movers have somewhere else to go, all of a kind being asked at once."""

import numpy as np

from rebalancer.planning.problem import FitProblem
from rebalancer.scheduling.state import BoolArray, IntArray


def movers_with_home(problem: FitProblem, headroom: IntArray) -> BoolArray:
    """(m,) which movers have a node other than their own that takes them where there is that
    headroom, (n, r).
    """
    rooms: dict[bytes, BoolArray] = {}
    found = np.zeros(problem.mover_count, np.bool_)
    for members in split_by(problem.kinds).values():
        request = problem.mover_request[members[0]]
        has_room = rooms.get(request.tobytes())
        if has_room is None:
            has_room = rooms[request.tobytes()] = problem.fits(request, headroom)
        takes = has_room & problem.allowed[problem.mover_class[members[0]]]
        # A node that could take another of the kind is no home for those that are on it already.
        found[members] = takes.sum() > takes[problem.mover_node[members]]
    return found


def split_by(codes: IntArray) -> dict[int, IntArray]:
    """Each code with the positions at which it stands, in order."""
    order = np.argsort(codes, kind="stable")
    values, starts, counts = np.unique(codes[order], return_index=True, return_counts=True)
    ends = starts + counts
    return {
        int(value): order[start:end] for value, start, end in zip(values, starts, ends, strict=True)
    }
