"""The nodes that a question about many nodes is about."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rebalancer.model.keys import CONTROL_PLANE_TAINTS, SCHEDULABLE
from rebalancer.model.objects import Node
from rebalancer.model.plan import Reason
from rebalancer.model.snapshot import Snapshot
from rebalancer.scheduling.drain_sign import drain_sign


class Pool(NamedTuple):
    names: tuple[str, ...]
    """Sorted."""
    left_out: tuple[Reason, ...]
    """Nodes with the labels that are asked for which are none of it."""


def pool_of(snapshot: Snapshot, selector: Mapping[str, str]) -> Pool:
    """The ready nodes that run VMs and have these labels."""
    nodes = sorted(_selected(snapshot, selector), key=lambda node: node.name)
    left_out = {node.name: reason for node in nodes if (reason := _unfit(node))}
    names = tuple(node.name for node in nodes if node.name not in left_out)
    return Pool(names, tuple(left_out.values()))


def without_signs(pool: Pool, snapshot: Snapshot) -> Pool:
    """The pool without the nodes that are being emptied anyway."""
    signs = {
        name: drain_sign(snapshot.node_by_name[name], snapshot.migration_configuration)
        for name in pool.names
    }
    marked = (
        Reason("already-draining", f"{sign}: it is being emptied anyway", node=name)
        for name, sign in signs.items()
        if sign
    )
    names = tuple(name for name in pool.names if not signs[name])
    return Pool(names, (*pool.left_out, *marked))


def _selected(snapshot: Snapshot, selector: Mapping[str, str]) -> Iterator[Node]:
    for node in snapshot.nodes:
        if all(node.labels.get(key) == value for key, value in selector.items()):
            yield node


def _unfit(node: Node) -> Reason | None:
    if not node.is_ready:
        return Reason("node-not-ready", "it is not ready", node=node.name)
    if any(taint.key in CONTROL_PLANE_TAINTS for taint in node.taints):
        return Reason("control-plane", "its taint keeps it for the control plane", node=node.name)
    if node.labels.get(SCHEDULABLE) != "true":
        return Reason("runs-no-vms", f"it is not labelled {SCHEDULABLE}=true", node=node.name)
    return None
