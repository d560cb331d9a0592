"""One move after the other, each the best that there is, then two at a time."""

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from benchmarks.fragment_rate.cluster import SLOT_CORES, Cluster
from rebalancer.scheduling.state import IntArray

Moves = list[tuple[int, int]]
"""(VM, target NUMA node), in an order in which each has its room at the target."""

_SMALL = SLOT_CORES // 2
"""Larger VMs never change what a NUMA node has beyond whole slots."""


def improve(cluster: Cluster, max_moves: int, *, with_pairs: bool) -> Moves:
    """Changes the cluster. No move takes a slot away, and each step makes at least one more."""
    moves: Moves = []
    while len(moves) < max_moves:
        step = _best_move(cluster)
        if step is None and with_pairs and len(moves) + 2 <= max_moves:
            step = next(_pairs(cluster), None)
        if step is None:
            break
        for vm, target in step:
            cluster.move(vm, target)
        moves += step
    return moves


def _best_move(cluster: Cluster) -> Moves | None:
    """A move that makes a slot: of the smallest VMs, the one that leaves the largest remainders."""
    rest = cluster.free_cores % SLOT_CORES
    for cores in sorted({int(c) for c in cluster.cores if c <= _SMALL}):
        best: tuple[int, Moves] | None = None
        for gib_per_core in np.unique(cluster.gib_per_core):
            alike = (cluster.cores == cores) & (cluster.gib_per_core == gib_per_core)
            source_rest = rest[cluster.numa]
            vms = np.flatnonzero(alike & (source_rest + cores >= SLOT_CORES))
            targets = _targets(cluster, rest, cores, int(gib_per_core))
            if not len(vms) or not len(targets):
                continue
            after = rest[cluster.numa[vms]] + cores - SLOT_CORES
            gain = after**2 - rest[cluster.numa[vms]] ** 2
            vm = int(vms[gain.argmax()])
            # The smallest remainder that holds it loses the least of what others could use.
            target = next((int(t) for t in targets if t != cluster.numa[vm]), None)
            if target is None:
                continue
            loss = (rest[target] - cores) ** 2 - rest[target] ** 2
            total = int(gain.max() + loss)
            if best is None or total > best[0]:
                best = total, [(vm, target)]
        if best is not None:
            return best[1]
    return None


def _targets(cluster: Cluster, rest: IntArray, cores: int, gib_per_core: int) -> IntArray:
    """NUMA nodes that take such a VM without losing a slot, smallest remainder first."""
    targets = np.flatnonzero((rest >= cores) & (cluster.free_gib >= cores * gib_per_core))
    return targets[np.argsort(rest[targets], kind="stable")]


def _pairs(cluster: Cluster) -> Iterator[Moves]:
    """Two VMs of one NUMA node that make a slot together, nearest to a slot first."""
    rest = cluster.free_cores % SLOT_CORES
    small = cluster.cores <= _SMALL
    for numa in np.argsort(-rest, kind="stable"):
        here = np.flatnonzero(small & (cluster.numa == numa))
        for pair in combinations(map(int, here), 2):
            if rest[numa] + cluster.cores[list(pair)].sum() < SLOT_CORES:
                continue
            if moves := _both(cluster, pair, int(numa)):
                yield moves


def _both(cluster: Cluster, pair: tuple[int, int], numa: int) -> Moves | None:
    after = cluster.copy()
    moves = []
    for vm in pair:
        rest = after.free_cores % SLOT_CORES
        cores, gib_per_core = int(after.cores[vm]), int(after.gib_per_core[vm])
        targets = _targets(after, rest, cores, gib_per_core)
        target = next((int(t) for t in targets if t != numa), None)
        if target is None:
            return None
        after.move(vm, target)
        moves.append((vm, target))
    return moves
