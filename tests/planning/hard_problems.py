"""Problems that the first stage leaves open: full nodes, few holes, VMs bound to some nodes."""

import numpy as np

from rebalancer.planning.problem import FitProblem

_SIZES = np.array([2, 4, 8, 16, 32])


def full_cluster(seed: int, nodes: int = 16, holes: float = 0.01) -> FitProblem:
    """Nodes filled with VMs of powers of two, of which a part is then taken away again; the item
    is the smallest that fits nowhere. Units: GiB, and VMs as the second resource.
    """
    random = np.random.default_rng(seed)
    capacity = random.choice([128, 192, 256], nodes)
    zones = random.integers(0, 3, nodes)
    allowed = np.stack([np.ones(nodes, np.bool_), *(zones == zone for zone in range(3))])
    headroom = np.stack([capacity, np.full(nodes, 30)], axis=1)
    places, sizes, classes = [], [], []
    for size in np.sort(random.choice(_SIZES, nodes * 20, p=[0.2, 0.2, 0.3, 0.2, 0.1]))[::-1]:
        klass = int(random.choice(4, p=[0.7, 0.1, 0.1, 0.1]))
        room = np.flatnonzero((headroom >= [size, 1]).all(axis=1) & allowed[klass])
        if len(room) and random.random() > holes:
            node = int(random.choice(room))
            headroom[node] -= [size, 1]
            places.append(node)
            sizes.append(int(size))
            classes.append(klass)
    request = np.column_stack([sizes, np.ones(len(sizes), np.int64)])
    cost = 10 + np.round(10 * request[:, 0] * (1 + random.exponential(0.5, len(sizes))))
    return FitProblem(
        request=np.array([2 ** int(np.log2(max(headroom[:, 0].max(), 1)) + 1), 1]),
        landing=allowed[seed % 4].copy(),
        headroom=headroom.astype(np.int64),
        mover_node=np.array(places, np.int64),
        mover_request=request.astype(np.int64),
        mover_release=request.astype(np.int64),
        mover_cost=cost.astype(np.int64),
        mover_class=np.array(classes, np.int64),
        allowed=allowed,
        charge=np.zeros(allowed.shape, np.int64),
        max_moves=10,
    )
