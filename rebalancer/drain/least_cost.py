"""What emptying nodes cannot cost less than, without looking for room."""

from collections import Counter

import numpy as np

from rebalancer.planning.movers import MILLISECONDS, Mover
from rebalancer.planning.view import View
from rebalancer.scheduling.state import BoolArray


def least_costs(cluster: View) -> Counter[str]:
    """By node with VMs that may leave: what their moves cost at least, in milliseconds.

    Each VM must make at least one move, and may make it wherever its rules allow.
    """
    is_open = ~cluster.state.is_draining
    least_charges: dict[tuple[int, int], int] = {}
    totals = Counter[str]()
    for mover in cluster.movers.movers:
        kind = mover.rules.number, mover.source
        if kind not in least_charges:
            least_charges[kind] = _least_charge(mover, is_open)
        least = round(mover.cost.total * MILLISECONDS) + least_charges[kind]
        totals[cluster.state.nodes[mover.source].name] += least
    return totals


def _least_charge(mover: Mover, is_open: BoolArray) -> int:
    """Rounded term by term, as the planner does."""
    targets = mover.rules.allowed_wherever_pods_are & is_open
    targets[mover.source] = False
    charges = np.zeros(len(targets))
    for seconds in mover.rules.charges.values():
        charges += np.rint(seconds * MILLISECONDS)
    return int(charges[targets].min()) if targets.any() else 0
