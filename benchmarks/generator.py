"""Random clusters with one Pending VM that fits nowhere: the inputs of the planner's benchmarks.

Axes: n nodes, v VMs, p pods that are no VMs, k classes of VMs that may go to the same nodes, and
the resources CPU in millicores, memory in MiB, and pods. Equal recipes give equal clusters.
"""

from typing import NamedTuple

import numpy as np

from benchmarks.placing import Room
from benchmarks.sizes import size_weights
from rebalancer.planning.problem import FitProblem
from rebalancer.scheduling.state import BoolArray, IntArray

CPU, MEMORY, PODS = range(3)


class Shape(NamedTuple):
    """How many nodes and VMs about, and how often a node has how much memory."""

    nodes: int
    vms: int
    node_gib: tuple[int, ...]
    weights: tuple[float, ...]


SHAPES = {
    "3/6": Shape(3, 6, (64, 96, 128), (0.4, 0.3, 0.3)),
    "16/150": Shape(16, 150, (128, 192, 256), (0.4, 0.3, 0.3)),
    "50/500": Shape(50, 500, (256, 384, 512), (0.5, 0.3, 0.2)),
    "279/2089": Shape(279, 2089, (128, 192, 256), (0.4, 0.3, 0.3)),
    "1000/7490": Shape(1000, 7490, (128, 192, 256), (0.4, 0.3, 0.3)),
    "1000/10000": Shape(1000, 10_000, (256, 384, 512), (0.5, 0.3, 0.2)),
    "5000/100000": Shape(5000, 100_000, (256, 384, 512), (0.4, 0.3, 0.3)),
}


class Recipe(NamedTuple):
    """All that a cluster depends on."""

    shape: str
    fill: float
    """Share of the memory that is requested, as far as VMs of these sizes get there."""
    seed: int
    mode: str = "hole2"
    """How it came about. `top`: filled up with small VMs. `churn`: overfilled by 12 points, then
    random VMs deleted. `holeX`: as `top`, then X % of the memory in use deleted."""
    has_equal_costs: bool = False
    """VMs of one size cost the same, as with the default policy; else up to a few times more."""

    grouped_share: float = 0.02
    """Share of the VMs that keep off the nodes of two others, by anti-affinity."""

    def __str__(self) -> str:
        costs = ", equal costs" if self.has_equal_costs else ""
        return f"{self.shape}, fill {self.fill:g}, {self.mode}, seed {self.seed}{costs}"


class Cluster(NamedTuple):
    """A generated cluster."""

    allocatable: IntArray
    """(n, 3)"""
    zone: IntArray
    """(n,)"""
    cpu_generation: IntArray
    """(n,)"""
    pod_node: IntArray
    """(p,) the nodes of the pods that are no VMs."""
    pod_request: IntArray
    """(p, 3)"""
    vm_node: IntArray
    """(v,)"""
    vm_request: IntArray
    """(v, 3)"""
    vm_class: IntArray
    """(v,)"""
    vm_group: IntArray
    """(v,) VMs of one group keep off each other's nodes; -1 for no group."""
    vm_is_pinned: BoolArray
    """(v,)"""
    vm_cost: IntArray
    """(v,) milliseconds."""
    allowed: BoolArray
    """(k, n) where zone and CPU generation let the class go."""
    pending_request: IntArray
    """(3,)"""
    pending_class: int

    @property
    def headroom(self) -> IntArray:
        """(n, 3)"""
        headroom = self.allocatable.copy()
        np.subtract.at(headroom, self.pod_node, self.pod_request)
        np.subtract.at(headroom, self.vm_node, self.vm_request)
        return headroom

    @property
    def fill(self) -> float:
        """Share of the memory that is requested."""
        total = self.allocatable[:, MEMORY].sum()
        return float(1 - self.headroom[:, MEMORY].sum() / total)


ZONES = 4
CPU_GENERATIONS = 3
_ANY_ZONE = 0
_PENDING_GIB = (8, 16, 32, 48, 64, 96, 128, 192, 256, 384)
_SIZES_GIB = (2, 4, 8, 16, 32, 64)
_TOP_UP_GIB = np.array([2, 4, 8, 16])
_PINNED_SHARE = 0.03
_GROUP_SIZE = 3
_MILLISECONDS_PER_GIB = 8_000
"""At 128 MiB/s, the default policy's assumed bandwidth."""
_FIXED_MILLISECONDS = 10_000
_LOCK_POD = np.array([0, 0, 1])
"""What holding the node takes besides the pending VM itself."""
_TINY_NODES = 10
"""Smaller clusters have one zone and one kind of CPU."""


def generate(recipe: Recipe) -> Cluster | None:
    """The cluster, or None where every pending VM of the usual sizes fits as it is."""
    shape = SHAPES[recipe.shape]
    rng = np.random.default_rng([recipe.seed, shape.nodes, round(recipe.fill * 100)])
    gib = rng.choice(shape.node_gib, shape.nodes, p=shape.weights)
    allocatable = np.column_stack([gib * 275, gib * 1024, np.full(shape.nodes, 110)])
    zone = rng.integers(0, ZONES, shape.nodes)
    generation = rng.choice(CPU_GENERATIONS, shape.nodes, p=[0.3, 0.4, 0.3])
    allowed = _allowed(zone, generation)
    pod_node, pod_request = _pods(rng, shape.nodes)
    room = Room(rng, allocatable, allowed)
    room.take(pod_node, pod_request)
    vm_node, vm_request, vm_class = _vms(rng, room, shape, recipe)
    pending = _pending(rng, room, recipe.seed)
    if pending is None:
        return None
    count = len(vm_node)
    spread = 0 if recipe.has_equal_costs else rng.exponential(0.5, count)
    copying = vm_request[:, MEMORY] / 1024 * _MILLISECONDS_PER_GIB * (1 + spread)
    return Cluster(
        allocatable=allocatable,
        zone=zone,
        cpu_generation=generation,
        pod_node=pod_node,
        pod_request=pod_request,
        vm_node=vm_node,
        vm_request=vm_request,
        vm_class=vm_class,
        vm_group=_groups(rng, vm_node, recipe.grouped_share),
        vm_is_pinned=rng.random(count) < _PINNED_SHARE,
        vm_cost=_FIXED_MILLISECONDS + np.round(copying).astype(np.int64),
        allowed=allowed,
        pending_request=pending[0],
        pending_class=pending[1],
    )


def fit_problem(cluster: Cluster, max_moves: int = 10) -> FitProblem:
    """The planner's arrays; anti-affinity bars nodes as they are before any move."""
    movers = np.flatnonzero(~cluster.vm_is_pinned)
    rules, mover_class = np.unique(
        np.column_stack([cluster.vm_class, cluster.vm_group])[movers], axis=0, return_inverse=True
    )
    allowed = cluster.allowed[rules[:, 0]]
    for row, group in enumerate(rules[:, 1]):
        if group >= 0:
            allowed[row, cluster.vm_node[cluster.vm_group == group]] = False
    return FitProblem(
        request=cluster.pending_request + _LOCK_POD,
        landing=cluster.allowed[cluster.pending_class],
        headroom=cluster.headroom,
        mover_node=cluster.vm_node[movers],
        mover_request=cluster.vm_request[movers],
        mover_release=cluster.vm_request[movers],
        mover_cost=cluster.vm_cost[movers],
        mover_class=mover_class.reshape(-1),
        allowed=allowed,
        charge=np.zeros(allowed.shape, np.int64),
        max_moves=max_moves,
    )


def _allowed(zone: IntArray, generation: IntArray) -> BoolArray:
    """(k, n), class by class as `_class_of` numbers them."""
    if len(zone) <= _TINY_NODES:
        return np.ones((1, len(zone)), np.bool_)
    return np.array(
        [
            ((zone == wanted - 1) | (wanted == _ANY_ZONE)) & (generation >= oldest)
            for wanted in range(ZONES + 1)
            for oldest in range(CPU_GENERATIONS)
        ]
    )


def _classes(rng: np.random.Generator, count: int, class_count: int) -> IntArray:
    """Most VMs may go to any zone and to CPUs of any generation."""
    if class_count == 1:
        return np.zeros(count, np.int64)
    wanted = np.where(rng.random(count) < 0.7, _ANY_ZONE, rng.integers(1, ZONES + 1, count))
    oldest = rng.choice(CPU_GENERATIONS, count, p=[0.75, 0.15, 0.1])
    return np.asarray(wanted * CPU_GENERATIONS + oldest, np.int64)


def _pods(rng: np.random.Generator, node_count: int) -> tuple[IntArray, IntArray]:
    """A DaemonSet's pod on every node, and some others here and there."""
    others = rng.integers(0, node_count, 2 * node_count)
    cpu = np.concatenate([np.full(node_count, 200), rng.choice([100, 500, 1000], len(others))])
    memory = np.concatenate([np.full(node_count, 512), rng.choice([128, 512, 1024], len(others))])
    nodes = np.concatenate([np.arange(node_count), others])
    return nodes, np.column_stack([cpu, memory, np.ones_like(cpu)])


def _requests(gib: IntArray, cpu_per_4gib: IntArray) -> IntArray:
    """What a launcher pod asks for: the guest's memory and 200 MiB + 4 MiB/GiB besides."""
    cpu = np.maximum(100, gib * 250 * cpu_per_4gib).astype(np.int64)
    return np.column_stack([cpu, gib * 1024 + 200 + 4 * gib, np.ones_like(gib)])


def _vms(
    rng: np.random.Generator, room: Room, shape: Shape, recipe: Recipe
) -> tuple[IntArray, IntArray, IntArray]:
    """Node, request and class of each VM."""
    total = room.capacity[:, MEMORY].sum()
    target = total * recipe.fill
    peak = total * min(0.995, recipe.fill + 0.12) if recipe.mode == "churn" else target
    weights = size_weights(_SIZES_GIB, peak / 1024 / shape.vms / 1.03)
    gib = np.sort(rng.choice(_SIZES_GIB, shape.vms, p=weights))[::-1]
    request = _requests(gib, rng.choice([0.5, 1, 1.5], shape.vms))
    vm_class = _classes(rng, shape.vms, len(room.allowed))
    within = np.cumsum(request[:, MEMORY]) <= peak - room.used(MEMORY)
    by_size = [np.flatnonzero(within & (gib == size)) for size in _SIZES_GIB[::-1]]
    batches = [(request[which], vm_class[which]) for which in by_size]
    placed = [room.place(*batch) for batch in batches]
    while (lack := peak - room.used(MEMORY)) > 0.002 * peak:
        count = int(lack / 1024 / _TOP_UP_GIB.mean()) + 1
        small = _requests(rng.choice(_TOP_UP_GIB, count), rng.choice([0.5, 1], count))
        batch = small, rng.integers(0, len(room.allowed), count)
        nodes = room.place(*batch)
        batches.append(batch)
        placed.append(nodes)
        if (nodes >= 0).sum() < 0.02 * count + 1:
            break
    nodes = np.concatenate(placed)
    is_placed = nodes >= 0
    nodes = nodes[is_placed]
    requests = np.concatenate([batch[0] for batch in batches])[is_placed]
    classes = np.concatenate([batch[1] for batch in batches])[is_placed]
    keep = _survivors(rng, requests[:, MEMORY], recipe, room.used(MEMORY), target)
    room.give_back(nodes[~keep], requests[~keep])
    return nodes[keep], requests[keep], classes[keep]


def _survivors(
    rng: np.random.Generator, memory: IntArray, recipe: Recipe, used: int, target: float
) -> BoolArray:
    """(v,) which VMs are left after the deletions of the mode."""
    if recipe.mode.startswith("hole"):
        target = used * (1 - float(recipe.mode.removeprefix("hole")) / 100)
    elif recipe.mode == "top":
        target = used
    order = rng.permutation(len(memory))
    deleted_before = np.concatenate([[0], np.cumsum(memory[order])[:-1]])
    keep = np.empty(len(memory), np.bool_)
    keep[order] = used - deleted_before <= target
    return keep


def _pending(rng: np.random.Generator, room: Room, seed: int) -> tuple[IntArray, int] | None:
    """The smallest VM that fits nowhere it may go; any zone with even seeds, else one zone."""
    count = len(room.allowed)
    if count == 1:
        classes = [0]
    elif seed % 2 == 0:
        classes = list(range(CPU_GENERATIONS))
    else:
        classes = [int(c) for c in rng.permutation(np.arange(CPU_GENERATIONS, count))]
    for vm_class in classes:
        for gib in _PENDING_GIB:
            request = _requests(np.array([gib]), np.array([1]))[0]
            allowed = room.allowed[vm_class]
            if (allowed & (room.free >= request + _LOCK_POD).all(axis=1)).any():
                continue
            if (allowed & (room.capacity >= request).all(axis=1)).any():
                return request, vm_class
            break
    return None


def _groups(rng: np.random.Generator, vm_node: IntArray, share: float) -> IntArray:
    """Random groups of VMs that are on different nodes."""
    group = np.full(len(vm_node), -1, np.int64)
    members = rng.permutation(len(vm_node))[: round(share * len(vm_node))]
    for number, start in enumerate(range(0, len(members) - _GROUP_SIZE + 1, _GROUP_SIZE)):
        chosen = members[start : start + _GROUP_SIZE]
        if len(set(vm_node[chosen])) == _GROUP_SIZE:
            group[chosen] = number
    return group
