"""What a source of snapshots and a cluster to act on must offer."""

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from rebalancer.model.objects import ObjectKey
from rebalancer.model.plan import Subject
from rebalancer.model.snapshot import Snapshot


class MigrationRequest(Struct, frozen=True):
    """A VirtualMachineInstanceMigration to create, pinned to its target."""

    name: str
    vmi: ObjectKey
    target_hostname: str
    """Value of the target's label kubernetes.io/hostname, which may differ from the node's name."""
    labels: Mapping[str, str]
    annotations: Mapping[str, str]


class Hold(Struct, frozen=True):
    """A lock pod: bound to the node, it keeps off every pod but the launchers that it admits.

    It asks for no room; required anti-affinity against all pods whose label
    kubevirt.io/created-by is none of the admitted uids does the work, because the scheduler
    honours the anti-affinity of pods that are already there.
    """

    name: str
    namespace: str
    node_name: str
    beneficiary_uid: str
    admitted_uids: tuple[str, ...]
    """VMIs whose launchers may go to the node: the beneficiary, and those that the plan moves
    there."""
    priority_class_name: str
    lifetime_seconds: int
    """After this the kubelet ends it by itself, should nobody be left to delete it."""
    image: str

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.namespace, self.name)


class Notice(Struct, frozen=True):
    """What an Event of the cluster tells about an object."""

    subject: Subject
    """A VirtualMachineInstance or a Node."""
    reason: str
    """In CamelCase, as Events have it."""
    message: str
    is_warning: bool = False


class Source(Protocol):
    """Something that a snapshot can be read from."""

    def read(self) -> Snapshot:
        """Everything, consistently.

        Raises: InputError, UnreadableObjectError, ClusterError.
        """


class Cluster(Source, Protocol):
    """A source that can also be acted upon."""

    def reread(
        self, snapshot: Snapshot, nodes: Collection[str], vmis: Collection[ObjectKey]
    ) -> Snapshot:
        """The snapshot with these nodes, the pods on them, these VMIs, their pods, and all
        migrations and quotas read anew; everything else as it was. What has vanished is gone.
        """

    def create_migration(self, request: MigrationRequest) -> None:
        """Creates the migration.

        Raises: ConflictError if one of that name exists, RefusedError if it can never be
        accepted as it is, ClusterError if it is not known whether it was created.
        """

    def create_hold(self, hold: Hold) -> None:
        """Creates the lock pod; one of that name that exists is as good.

        Raises: RefusedError, ClusterError.
        """

    def delete_hold(self, key: ObjectKey) -> None:
        """Deletes a lock pod; one that is gone already is as good."""

    def create_event(self, notice: Notice) -> None:
        """Makes an Event of it; one that tells the same and is there is as good.

        Raises: ClusterError.
        """

    def wait_for_change(self, vmis: Collection[ObjectKey], seconds: float) -> None:
        """Returns when the migrations or pods of these VMIs may have changed, at the latest after
        that time. Waking for nothing or late is allowed: callers read anew and look.
        """

    def leadership(self) -> AbstractContextManager["Leadership"]:
        """The right to act, held for the length of the `with` block.

        Raises: NotLeaderError if somebody else has it.
        """

    def now(self) -> datetime:
        """The cluster's time, with time zone."""


class Leadership(Protocol):
    def is_held(self) -> bool:
        """Whether nobody else can have taken over yet."""
