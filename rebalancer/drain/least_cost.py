"""What emptying nodes cannot cost less than, without looking for room."""

from collections import Counter

import numpy as np

from rebalancer.planning.view import View


def least_costs(cluster: View) -> Counter[str]:
    """By node with VMs that may leave: what their moves cost at least, in milliseconds.

    Each VM must make at least one move, and may make it wherever its rules allow.
    """
    movers, state = cluster.movers, cluster.state
    is_open = ~state.is_draining
    # What is alike is worked out once: the movers of a class that are on one node.
    alike, index = np.unique(
        np.column_stack([movers.mover_class, movers.source]), axis=0, return_inverse=True
    )
    least_charge = np.zeros(len(alike), np.int64)
    for i, (number, source) in enumerate(alike.tolist()):
        targets = movers.classes[number].allowed_wherever_pods_are & is_open
        targets[source] = False
        if targets.any():
            least_charge[i] = movers.charge[number][targets].min()
    totals = Counter[str]()
    least = movers.cost + least_charge[index]
    for source, cost in zip(movers.source.tolist(), least.tolist(), strict=True):
        totals[state.nodes[source].name] += cost
    return totals
