"""How many VMs of given sizes could start now, and how large a VM could be.

Counted as Ganeti's hspace does: each node by itself, in whole VMs, over all resources at once.
"""

from collections.abc import Iterable, Mapping

import numpy as np
from msgspec import Struct

from rebalancer.headroom.room import slots
from rebalancer.model.keys import SCHEDULABLE
from rebalancer.model.objects import EMPTY, Amounts, Pod, Toleration
from rebalancer.model.snapshot import Snapshot
from rebalancer.scheduling.feasibility import evaluate
from rebalancer.scheduling.state import BoolArray, ClusterState, IntArray

_BYTES_PER_GIB = 2**30


class VMSize(Struct, frozen=True):
    """A size of VM, and where such VMs may go besides what holds for all."""

    name: str
    requests: Amounts
    """Of its launcher pod, so with what KubeVirt adds to the guest's memory; the pod's own slot
    (`pods`: 1) need not be named."""
    node_selector: Mapping[str, str] = EMPTY
    tolerations: tuple[Toleration, ...] = ()


class SizeCapacity(Struct, frozen=True):
    """How many VMs of one size fit now."""

    size: str
    fits: int
    """How many could start beside each other."""
    fitting_nodes: tuple[str, ...]
    """Nodes that take at least one, in snapshot order."""
    allowed_nodes: int
    """How many nodes would take one if they had room."""
    nearest: "Shortfall | None" = None
    """Where it fits on none of the allowed nodes: the one that lacks least."""


class Shortfall(Struct, frozen=True):
    """What a node lacks for a VM."""

    node: str
    lacking: Amounts
    """Resource to how much more of it the node would need."""


class LargestVM(Struct, frozen=True):
    """The largest VM of a given shape that could start now."""

    memory_bytes: int
    cpu_millicores: int
    node: str


def capacity(state: ClusterState, sizes: Iterable[VMSize]) -> tuple[SizeCapacity, ...]:
    """For each size by itself: one that starts takes room from the others."""
    return tuple(_capacity(state, size) for size in sizes)


def _capacity(state: ClusterState, size: VMSize) -> SizeCapacity:
    pod = launcher_of(size, state.snapshot)
    allowed = evaluate(pod, state).allowed
    resources = [resource for resource, amount in pod.requests.items() if amount]
    request = np.array([pod.requests[resource] for resource in resources], np.int64)
    headroom = np.column_stack([state.headroom(resource) for resource in resources])
    fits = np.where(allowed, slots(request, headroom), 0)
    fitting = np.flatnonzero(fits)
    return SizeCapacity(
        size=size.name,
        fits=int(fits.sum()),
        fitting_nodes=tuple(state.nodes[i].name for i in fitting),
        allowed_nodes=int(allowed.sum()),
        nearest=None
        if len(fitting)
        else _nearest(state, allowed, resources, np.maximum(request - headroom, 0), request),
    )


def _nearest(
    state: ClusterState,
    allowed: BoolArray,
    resources: list[str],
    lacking: IntArray,
    request: IntArray,
) -> Shortfall | None:
    """The allowed node where the shares of the request that it lacks are smallest together."""
    nodes = np.flatnonzero(allowed)
    if not len(nodes):
        return None
    node = nodes[(lacking[nodes] / request).sum(axis=1).argmin()]
    amounts = zip(resources, lacking[node].tolist(), strict=True)
    return Shortfall(state.nodes[node].name, {name: lack for name, lack in amounts if lack})


def largest_size(sizes: Iterable[VMSize], capacities: Iterable[SizeCapacity]) -> str | None:
    """Name of the size with the most memory of which one could start now."""
    fitting = [
        (size.requests.get("memory", 0), size.requests.get("cpu", 0), size.name)
        for size, found in zip(sizes, capacities, strict=True)
        if found.fits
    ]
    return max(fitting)[-1] if fitting else None


def largest_vm(
    state: ClusterState,
    millicores_per_gib: int,
    *,
    node_selector: Mapping[str, str] = EMPTY,
    tolerations: tuple[Toleration, ...] = (),
) -> LargestVM | None:
    """The launcher pod with the most memory that could start now, and with so much cpu for each
    GiB of it, rounded up; None where no node takes any.
    """
    smallest = VMSize("", {}, node_selector, tolerations)
    takes = evaluate(launcher_of(smallest, state.snapshot), state).feasible
    memory = np.where(takes, np.maximum(state.headroom("memory"), 0), 0)
    if millicores_per_gib:
        cpu = np.maximum(state.headroom("cpu"), 0)
        memory = np.minimum(memory, cpu * _BYTES_PER_GIB // millicores_per_gib)
    if not memory.any():
        return None
    node = int(memory.argmax())
    largest = int(memory[node])
    return LargestVM(
        memory_bytes=largest,
        cpu_millicores=-(-largest * millicores_per_gib // _BYTES_PER_GIB),
        node=state.nodes[node].name,
    )


def launcher_of(size: VMSize, snapshot: Snapshot, name: str = "") -> Pod:
    """A launcher pod without rules of its own; its VM has no labels and no namespace yet.

    Source: kubevirt/kubevirt v1.8.4 pkg/virt-controller/services/nodeselectorrenderer.go: every
    launcher asks for kubevirt.io/schedulable.
    """
    return Pod(
        namespace="",
        name=name,
        uid=name,
        phase="Pending",
        requests={**size.requests, "pods": 1},
        labels={"kubevirt.io": "virt-launcher"},
        node_selector={
            SCHEDULABLE: "true",
            **snapshot.launcher_configuration.node_selector,
            **size.node_selector,
        },
        tolerations=size.tolerations,
    )
