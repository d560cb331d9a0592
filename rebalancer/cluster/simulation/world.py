"""The simulated cluster's objects, as the API server would hold them."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from msgspec.structs import replace

from rebalancer.cluster.simulation.agenda import Agenda
from rebalancer.model.objects import (
    Amounts,
    Migration,
    Node,
    ObjectKey,
    Pod,
    VirtualMachineInstance,
)
from rebalancer.model.snapshot import Snapshot


class JournalEntry(NamedTuple):
    at: datetime
    what: str


class World:
    """Objects by name in the order of their creation; each change makes a new `version`."""

    def __init__(self, snapshot: Snapshot, agenda: Agenda) -> None:
        self._agenda = agenda
        self._snapshot = snapshot
        self._vmi_keys = {vmi.uid: vmi.key for vmi in snapshot.vmis}
        self.nodes = {node.name: node for node in snapshot.nodes}
        self.pods = {pod.key: pod for pod in snapshot.pods}
        self.vmis = {vmi.key: vmi for vmi in snapshot.vmis}
        self.migrations = {ObjectKey(m.namespace, m.name): m for m in snapshot.migrations}
        self.version = 0
        self._snapshot_instant = (self.version, agenda.now)
        self.touched: set[ObjectKey] = set()
        """VMIs that have changed, or their pods or migrations, since this was last emptied."""
        self.journal: list[JournalEntry] = []
        requested = self._requested()
        self._limits = {node.name: _limits(node, requested[node.name]) for node in snapshot.nodes}

    def note(self, what: str) -> None:
        self.journal.append(JournalEntry(self._agenda.now, what))

    def snapshot(self) -> Snapshot:
        """The same object, with its indexes, for as long as nothing changes."""
        instant = (self.version, self._agenda.now)
        if instant != self._snapshot_instant:
            self._snapshot_instant = instant
            self._snapshot = replace(
                self._snapshot,
                taken_at=self._agenda.now,
                nodes=tuple(self.nodes.values()),
                pods=tuple(self.pods.values()),
                vmis=tuple(self.vmis.values()),
                migrations=tuple(self.migrations.values()),
            )
        return self._snapshot

    def put_node(self, node: Node) -> None:
        self.nodes[node.name] = node
        self._limits[node.name] = _limits(node, self._requested()[node.name])
        self.version += 1

    def put_pod(self, pod: Pod) -> None:
        if self.pods.get(pod.key) != pod:
            self.pods[pod.key] = pod
            self._pod_changed(pod)

    def remove_pod(self, pod: Pod) -> None:
        del self.pods[pod.key]
        self._pod_changed(pod)

    def put_vmi(self, vmi: VirtualMachineInstance) -> None:
        if self.vmis.get(vmi.key) != vmi:
            self.vmis[vmi.key] = vmi
            self._vmi_keys[vmi.uid] = vmi.key
            self._changed(vmi.key)

    def remove_vmi(self, vmi: VirtualMachineInstance) -> None:
        del self.vmis[vmi.key]
        self._changed(vmi.key)

    def put_migration(self, migration: Migration) -> None:
        self.migrations[ObjectKey(migration.namespace, migration.name)] = migration
        self._changed(migration.vmi_key)

    def remove_migration(self, migration: Migration) -> None:
        del self.migrations[ObjectKey(migration.namespace, migration.name)]
        self._changed(migration.vmi_key)

    def check_room(self) -> None:
        """No node's pods may request more than there is, or than they did when it was put there.

        Raises: AssertionError with the figures; kube-scheduler and kubelet do not let it happen.
        """
        for name, requested in self._requested().items():
            for resource, amount in requested.items():
                limit = self._limits[name].get(resource, 0)
                if amount > limit:
                    raise AssertionError(
                        f"node {name}: pods request {amount} of {resource}, {limit} is there"
                    )

    def _pod_changed(self, pod: Pod) -> None:
        self._changed(self._vmi_keys.get(pod.vmi_uid or ""))

    def _changed(self, vmi: ObjectKey | None) -> None:
        self.version += 1
        if vmi is not None:
            self.touched.add(vmi)

    def _requested(self) -> Mapping[str, Counter[str]]:
        """What the pods that hold room on each known node request in sum."""
        requested: dict[str, Counter[str]] = defaultdict(Counter)
        for pod in self.pods.values():
            if pod.node_name in self.nodes and not pod.is_finished:
                requested[pod.node_name].update(pod.requests)
        return requested


def _limits(node: Node, requested: Amounts) -> Amounts:
    """A node may be over-committed from the start, or become so by losing allocatable."""
    resources = {*node.allocatable, *requested}
    return {r: max(node.allocatable.get(r, 0), requested.get(r, 0)) for r in resources}
