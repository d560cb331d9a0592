"""The most slots that so many moves can make, as one integer model.

VMs of one type are alike, so it is enough how many of each type leave and arrive at each NUMA
node; a VM on both NUMA nodes of a machine counts at the first. No order of moves is looked at.
"""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from ortools.sat.python import cp_model

from benchmarks.fragment_rate.cluster import SLOT_CORES, Cluster
from benchmarks.fragment_rate.greedy import Moves
from benchmarks.measure import stopped_after

Type = tuple[int, int]
"""Cores and GiB per core."""

Places = Counter[tuple[Type, int]]
"""How many VMs of which type at which NUMA node."""


class Target(NamedTuple):
    """What the solver found."""

    leaving: Places
    arriving: Places
    max_slots: int
    """No moves, in whatever order, make more."""


def type_of(cluster: Cluster, vm: int) -> Type:
    return int(cluster.cores[vm]), int(cluster.gib_per_core[vm])


def solve(cluster: Cluster, known: Moves, max_moves: int, core_seconds: float) -> Target:
    """One thread; starts from known moves, and is at least as good."""
    model = _Model(cluster, max_moves)
    model.hint(known)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    with stopped_after(core_seconds, solver.stop_search):
        status = solver.solve(model.cp)
    bound = int(solver.best_objective_bound + 1e-6)
    if status not in {cp_model.OPTIMAL, cp_model.FEASIBLE}:
        return Target(Counter(), Counter(), bound)
    leaving = Counter({key: solver.value(var) for key, var in model.leaves.items()})
    arriving = Counter({key: solver.value(var) for key, var in model.arrives.items()})
    # One that leaves and one that arrives of the same type are one that stays.
    return Target(leaving - arriving, arriving - leaving, bound)


class _Model:
    def __init__(self, cluster: Cluster, max_moves: int) -> None:
        self.cluster = cluster
        self.cp = cp_model.CpModel()
        here: Places = Counter(
            (type_of(cluster, vm), int(cluster.numa[vm])) for vm in range(len(cluster.cores))
        )
        self.examples = {type_of(cluster, vm): vm for vm in range(len(cluster.cores))}
        self.leaves = {
            key: self.cp.new_int_var(0, count, f"leaves {key}")
            for key, count in sorted(here.items())
        }
        self.arrives = {
            (kind, numa): self.cp.new_int_var(0, max_moves, f"arrives {kind} {numa}")
            for kind in sorted(self.examples)
            for numa in self._starts(kind)
        }
        self._constrain(max_moves)

    def _starts(self, kind: Type) -> range:
        step = 2 if self.cluster.is_double[self.examples[kind]] else 1
        return range(0, len(self.cluster.free_cores), step)

    def _flows(self) -> Iterator[tuple[Type, int, cp_model.LinearExpr]]:
        """What arrives less what leaves, by type and NUMA node."""
        for key, arrives in self.arrives.items():
            kind, numa = key
            leaves = self.leaves.get(key)
            yield kind, numa, arrives - leaves if leaves is not None else arrives + 0

    def _constrain(self, max_moves: int) -> None:
        count = len(self.cluster.free_cores)
        cores: list[list[cp_model.LinearExpr]] = [[] for _ in range(count)]
        gib: list[list[cp_model.LinearExpr]] = [[] for _ in range(count)]
        for kind, numa, flow in self._flows():
            vm = self.examples[kind]
            needed_cores, needed_gib = self.cluster.share(vm)
            for at in range(count)[self.cluster.span(vm, numa)]:
                cores[at].append(needed_cores * flow)
                gib[at].append(needed_gib * flow)
        self.slots = [
            self.cp.new_int_var(0, int(free + max_moves * SLOT_CORES) // SLOT_CORES, f"slots {at}")
            for at, free in enumerate(self.cluster.free_cores)
        ]
        for at in range(count):
            free_cores, free_gib = self.cluster.free_cores[at], self.cluster.free_gib[at]
            self.cp.add(sum(cores[at]) + SLOT_CORES * self.slots[at] <= int(free_cores))
            self.cp.add(sum(gib[at]) <= int(free_gib))
        for kind in self.examples:
            balance = sum(flow for other, _, flow in self._flows() if other == kind)
            self.cp.add(balance == 0)
        moves = sum(self.leaves.values())
        self.cp.add(moves <= max_moves)
        # A move changes one remainder of 16 for the better at most, so it makes one slot at most.
        self.cp.add(sum(self.slots) <= self.cluster.slots + moves)
        self.cp.maximize(sum(self.slots))

    def hint(self, moves: Moves) -> None:
        after = self.cluster.copy()
        for vm, target in moves:
            after.move(vm, target)
        flows: Counter[tuple[Type, int]] = Counter()
        for vm in map(int, np.flatnonzero(after.numa != self.cluster.numa)):
            kind = type_of(self.cluster, vm)
            flows[kind, int(self.cluster.numa[vm])] -= 1
            flows[kind, int(after.numa[vm])] += 1
        for key, var in self.leaves.items():
            self.cp.add_hint(var, max(0, -flows[key]))
        for key, var in self.arrives.items():
            self.cp.add_hint(var, max(0, flows[key]))
        for var, free in zip(self.slots, after.free_cores, strict=True):
            self.cp.add_hint(var, int(free) // SLOT_CORES)


def in_order(cluster: Cluster, target: Target) -> Moves:
    """Changes the cluster: moves that lead to the target, as far as one can follow another.

    Each has its room at its target before it leaves its source. Where several could be next, the
    one that leaves the most free memory at its target is.
    """
    leaving, arriving = Counter(target.leaving), Counter(target.arriving)
    waiting: dict[tuple[Type, int], list[int]] = {}
    for vm in range(len(cluster.cores)):
        waiting.setdefault((type_of(cluster, vm), int(cluster.numa[vm])), []).append(vm)
    moves: Moves = []
    while step := _next_move(cluster, leaving, arriving, waiting):
        vm, numa = step
        kind = type_of(cluster, vm)
        source = int(cluster.numa[vm])
        waiting[kind, source].remove(vm)
        leaving[kind, source] -= 1
        arriving[kind, numa] -= 1
        cluster.move(vm, numa)
        moves.append(step)
    return moves


def _next_move(
    cluster: Cluster,
    leaving: Places,
    arriving: Places,
    waiting: dict[tuple[Type, int], list[int]],
) -> tuple[int, int] | None:
    candidates = []
    for (kind, source), going in leaving.items():
        if going <= 0:
            continue
        vm = waiting[kind, source][0]
        for (other, numa), coming in arriving.items():
            if coming > 0 and other == kind and numa != source and cluster.fits(vm, numa):
                left = int(np.min(cluster.free_gib[cluster.span(vm, numa)]))
                candidates.append((left, -numa, -vm))
    if not candidates:
        return None
    _, numa, vm = max(candidates)
    return -vm, -numa
