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
    totals = Counter[str]()
    for mover in cluster.movers.movers:
        targets = mover.rules.allowed_wherever_pods_are & is_open
        targets[mover.source] = False
        least = round(mover.cost.total * MILLISECONDS) + _least_charge(mover, targets)
        totals[cluster.state.nodes[mover.source].name] += least
    return totals


def _least_charge(mover: Mover, targets: BoolArray) -> int:
    """Rounded term by term, as the planner does."""
    charges = np.zeros(len(targets))
    for seconds in mover.rules.charges.values():
        charges += np.rint(seconds * MILLISECONDS)
    return int(charges[targets].min()) if targets.any() else 0
