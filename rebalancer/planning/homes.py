"""Which movers have somewhere else to go, all of a kind being asked at once."""

import numpy as np

from rebalancer.planning.problem import FitProblem
from rebalancer.planning.rows import number_rows
from rebalancer.scheduling.state import BoolArray, IntArray


def movers_with_home(problem: FitProblem, headroom: IntArray) -> BoolArray:
    """(m,) which movers have a node other than their own that takes them where there is that
    headroom, (n, r).
    """
    requests = problem.mover_request[problem.examples]
    alike = number_rows(requests)
    _, first = np.unique(alike, return_index=True)
    has_room = problem.fits(requests[first][:, None], headroom)
    takes = has_room[alike] & problem.allowed[problem.mover_class[problem.examples]]
    # A node that could take another of the kind is no home for those that are on it already.
    others = np.count_nonzero(takes, axis=1)[problem.kinds]
    return np.asarray(others > takes[problem.kinds, problem.mover_node], np.bool_)


def split_by(codes: IntArray) -> dict[int, IntArray]:
    """Each code with the positions at which it stands, in order."""
    order = np.argsort(codes, kind="stable")
    values, starts, counts = np.unique(codes[order], return_index=True, return_counts=True)
    ends = starts + counts
    return {
        int(value): order[start:end] for value, start, end in zip(values, starts, ends, strict=True)
    }


def most_headroom(problem: FitProblem, may_leave: BoolArray) -> IntArray:
    """(n, r) there is never more on a node when as many of these movers have left as may move."""
    node, release = problem.mover_node[may_leave], problem.mover_release[may_leave]
    together, largest = np.zeros_like(problem.headroom), np.zeros_like(problem.headroom)
    np.add.at(together, node, release)
    np.maximum.at(largest, node, release)
    most: IntArray = problem.headroom + np.minimum(together, largest * problem.max_moves)
    return most
