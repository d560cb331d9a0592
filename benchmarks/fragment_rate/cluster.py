"""Random machines of two NUMA nodes, with VMs on one or on both of them."""

from typing import NamedTuple

import numpy as np

from benchmarks.sizes import size_weights
from rebalancer.scheduling.state import BoolArray, IntArray

SLOT_CORES = 16
"""A VM that needs so many cores on one NUMA node is the one to make room for."""

SIZES = (2, 4, 8, 16, 32, 64)
GIB_PER_CORE = (2, 4)
_DOUBLE_CORES = 32
"""From here on a VM takes half of what it needs from each of a machine's NUMA nodes."""

_MACHINES = 279
_VMS = 2089
_NUMA_CORES = (44, 64)
_NUMA_GIB_PER_CORE = 4


class Setting(NamedTuple):
    """How a cluster came about: filled up, then VMs deleted at random."""

    filled_share: float
    """Of all cores, before the deletions."""
    free_share: float
    """Of all cores, in the end."""
    choices: float
    """Random places of which a new VM takes the emptiest; 1.35: two in 35 of 100 cases, else one.
    """


SETTINGS = {
    "A": Setting(0.985, 0.10, 1),
    "B": Setting(0.93, 0.10, 1),
    "C": Setting(0.90, 0.10, 1.35),
    "D": Setting(0.95, 0.10, 3),
}


class Cluster(NamedTuple):
    """Axes: a NUMA nodes, those of one machine side by side; v VMs."""

    free_cores: IntArray
    """(a,)"""
    free_gib: IntArray
    """(a,)"""
    cores: IntArray
    """(v,) of the whole VM."""
    gib_per_core: IntArray
    """(v,)"""
    numa: IntArray
    """(v,) the NUMA node, or the first of the two."""

    @property
    def is_double(self) -> BoolArray:
        """(v,) which VMs are on both NUMA nodes of their machine."""
        return np.asarray(self.cores >= _DOUBLE_CORES, np.bool_)

    @property
    def fragment_rate(self) -> float:
        """Share of the free cores that are of no use to a VM of SLOT_CORES."""
        return float((self.free_cores % SLOT_CORES).sum() / self.free_cores.sum())

    @property
    def slots(self) -> int:
        return int((self.free_cores // SLOT_CORES).sum())

    def span(self, vm: int, numa: int) -> slice:
        """The NUMA nodes that the VM takes if it is at this one."""
        return slice(numa, numa + (2 if self.cores[vm] >= _DOUBLE_CORES else 1))

    def share(self, vm: int) -> tuple[int, int]:
        """Cores and GiB that the VM takes from each of its NUMA nodes."""
        cores = int(self.cores[vm])
        cores = cores // 2 if cores >= _DOUBLE_CORES else cores
        return cores, cores * int(self.gib_per_core[vm])

    def fits(self, vm: int, numa: int) -> bool:
        cores, gib = self.share(vm)
        span = self.span(vm, numa)
        return bool((self.free_cores[span] >= cores).all() and (self.free_gib[span] >= gib).all())

    def move(self, vm: int, target: int) -> None:
        """Changes this cluster. Raises: ValueError without room at the target."""
        if not self.fits(vm, target):
            raise ValueError(f"VM {vm} does not fit on NUMA node {target}")
        cores, gib = self.share(vm)
        for numa, sign in ((int(self.numa[vm]), 1), (target, -1)):
            self.free_cores[self.span(vm, numa)] += sign * cores
            self.free_gib[self.span(vm, numa)] += sign * gib
        self.numa[vm] = target

    def copy(self) -> "Cluster":
        return Cluster(*(array.copy() for array in self))


def generate(setting: Setting, seed: int) -> Cluster:
    rng = np.random.default_rng(seed)
    machine_cores = rng.choice(_NUMA_CORES, _MACHINES)
    capacity = np.repeat(machine_cores, 2)
    mean = capacity.sum() * (1 - setting.free_share) / _VMS
    count = int(_VMS * setting.filled_share / (1 - setting.free_share))
    cores = rng.choice(SIZES, count, p=size_weights(SIZES, float(mean)))
    # Larger ones tend to be older.
    cores = cores[np.argsort(0.6 * rng.standard_normal(count) - np.log(cores))]
    everything = Cluster(
        free_cores=capacity.copy(),
        free_gib=capacity * _NUMA_GIB_PER_CORE,
        cores=cores,
        gib_per_core=rng.choice(GIB_PER_CORE, count),
        numa=np.full(count, -1),
    )
    _fill(rng, everything, capacity.sum() * (1 - setting.filled_share), setting.choices)
    return _thin_out(rng, everything, capacity.sum() * setting.free_share)


def _fill(rng: np.random.Generator, cluster: Cluster, left_cores: float, choices: float) -> None:
    for vm in range(len(cluster.cores)):
        if cluster.free_cores.sum() <= left_cores:
            return
        cores, gib = cluster.share(vm)
        fits = (cluster.free_cores >= cores) & (cluster.free_gib >= gib)
        if cluster.is_double[vm]:
            fits[::2] &= fits[1::2]
            fits[1::2] = False
        homes = np.flatnonzero(fits)
        if not len(homes):
            continue
        draws = int(choices) + int(rng.random() < choices % 1)
        drawn = rng.choice(homes, draws)
        numa = int(drawn[cluster.free_cores[drawn].argmax()])
        cluster.free_cores[cluster.span(vm, numa)] -= cores
        cluster.free_gib[cluster.span(vm, numa)] -= gib
        cluster.numa[vm] = numa


def _thin_out(rng: np.random.Generator, cluster: Cluster, free_cores: float) -> Cluster:
    """Without VMs that were never placed, and with some deleted."""
    keep = cluster.numa >= 0
    for vm in rng.permutation(np.flatnonzero(keep)):
        if cluster.free_cores.sum() >= free_cores:
            break
        cores, gib = cluster.share(int(vm))
        span = cluster.span(int(vm), int(cluster.numa[vm]))
        cluster.free_cores[span] += cores
        cluster.free_gib[span] += gib
        keep[vm] = False
    return cluster._replace(
        cores=cluster.cores[keep],
        gib_per_core=cluster.gib_per_core[keep],
        numa=cluster.numa[keep],
    )
