"""A cluster in memory that obeys the rules of the real one, in virtual time.

It starts from a snapshot and reacts as kube-scheduler, kubelet, virt-api and virt-controller do.
Nothing in it is random: the same calls give the same course of events.
"""

from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from uuid import NAMESPACE_OID, uuid5

from msgspec.structs import replace

from rebalancer.cluster.protocols import Hold, Leadership, MigrationRequest, Notice
from rebalancer.cluster.simulation.agenda import Action, Agenda, Pace, no_pace
from rebalancer.cluster.simulation.kubelet import Kubelet
from rebalancer.cluster.simulation.migration_controller import MigrationController
from rebalancer.cluster.simulation.scheduler import Scheduler
from rebalancer.cluster.simulation.scripts import Faults, Outcome, Outcomes, Request
from rebalancer.cluster.simulation.virt_api import admitted
from rebalancer.cluster.simulation.vmi_controller import VMIController
from rebalancer.cluster.simulation.world import JournalEntry, World
from rebalancer.errors import ConflictError, RefusedError
from rebalancer.model.keys import GOAL_UID
from rebalancer.model.objects import Node, ObjectKey, Pod, VirtualMachineInstance
from rebalancer.model.snapshot import Snapshot
from rebalancer.planning.outlook import lock_pod


class SimulatedCluster:
    """Implements `Cluster`; the methods after those of the protocol are for tests and demos.

    `bandwidth_bytes_per_second`: of each migration, unless the KubeVirt CR sets less.
    `boot_seconds`: how long a VM takes from Scheduled to Running.
    Every method but `read` raises AssertionError should a node ever be over-committed.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        *,
        bandwidth_bytes_per_second: int = 128 * 2**20,
        boot_seconds: float = 20.0,
        pace: Pace = no_pace,
    ) -> None:
        self._agenda = Agenda(snapshot.taken_at, pace)
        self._world = World(snapshot, self._agenda)
        self._outcomes = Outcomes()
        self._faults = Faults()
        self._kubelet = Kubelet(self._world, self._agenda)
        self._vmis = VMIController(self._world, self._agenda, boot_seconds=boot_seconds)
        self._migrations = MigrationController(
            self._world,
            self._agenda,
            self._outcomes,
            snapshot.migration_configuration,
            bandwidth_bytes_per_second=bandwidth_bytes_per_second,
        )
        self._scheduler = Scheduler(self._world, self._agenda)
        self._leadership = SimulatedLeadership()
        self.notices: list[Notice] = []
        """What Events tell, each once, in the order in which they were made."""
        self._settle()

    # The protocol

    def read(self) -> Snapshot:
        with self._faults.around("read"):
            self._world.touched.clear()
            return self._world.snapshot()

    def reread(
        self,
        snapshot: Snapshot,  # noqa: ARG002
        nodes: Collection[str],  # noqa: ARG002
        vmis: Collection[ObjectKey],  # noqa: ARG002
    ) -> Snapshot:
        """Everything anew, which is more than was asked for and costs nothing here."""
        with self._faults.around("reread"):
            self._world.touched.clear()
            return self._world.snapshot()

    def create_migration(self, request: MigrationRequest) -> None:
        with self._faults.around("create_migration"):
            uid = self._new_uid("migration", request.name)
            migration = admitted(request, uid, self._world)
            self._migrations.target_hostnames[uid] = request.target_hostname
            self._world.note(
                f"migration {migration.namespace}/{migration.name} created:"
                f" VM {request.vmi} to {request.target_hostname}"
            )
            self._world.put_migration(replace(migration, created_at=self._agenda.now))
            self._settle()

    def create_hold(self, hold: Hold) -> None:
        with self._faults.around("create_hold"):
            pod = self._lock_pod(hold)
            if found := self._world.pods.get(pod.key):
                _check_existing(found, pod)
                return
            self._world.note(f"lock pod {pod.key} created on {hold.node_name}")
            self._world.put_pod(self._kubelet.admit(pod))
            self._agenda.after(hold.lifetime_seconds, lambda: self._lifetime_over(pod))
            self._settle()

    def delete_hold(self, key: ObjectKey) -> None:
        with self._faults.around("delete_hold"):
            pod = self._world.pods.get(key)
            if pod is None:
                return
            self._world.note(f"lock pod {key} deleted")
            self._world.remove_pod(pod)
            self._settle()

    def create_event(self, notice: Notice) -> None:
        with self._faults.around("create_event"):
            if notice not in self.notices:
                self.notices.append(notice)

    def wait_for_change(self, vmis: Collection[ObjectKey], seconds: float) -> None:
        """A change since the last reading counts as well, so that none is ever missed."""
        with self._faults.around("wait_for_change"):
            until = self._agenda.now + timedelta(seconds=seconds)
            while self._world.touched.isdisjoint(vmis) and self._agenda.run_next(until):
                self._settle()
            self._world.touched.clear()

    def leadership(self) -> AbstractContextManager[Leadership]:
        """Granted to everybody who asks."""
        self._leadership = SimulatedLeadership()
        return nullcontext(self._leadership)

    def now(self) -> datetime:
        return self._agenda.now

    # What happens besides

    @property
    def journal(self) -> tuple[JournalEntry, ...]:
        """What has happened so far."""
        return tuple(self._world.journal)

    def advance(self, seconds: float) -> None:
        """Lets that much time pass."""
        until = self._agenda.now + timedelta(seconds=seconds)
        while self._agenda.run_next(until):
            self._settle()

    def at(self, seconds_from_now: float, action: Action) -> None:
        """Has something happen later; the action calls whatever it likes but `advance` and
        `wait_for_change`.
        """
        self._agenda.after(seconds_from_now, action)

    def add_pod(self, pod: Pod) -> None:
        """A pod is created now: to be scheduled, or for the node that it names.

        Raises: ConflictError if one of that name exists.
        """
        if pod.key in self._world.pods:
            raise ConflictError(f'pods "{pod.name}" already exists')
        fresh = replace(
            pod,
            phase="Pending",
            created_at=self._agenda.now,
            unschedulable_since=None,
            unschedulable_message="",
        )
        self._world.note(f"pod {pod.key} created")
        self._world.put_pod(self._kubelet.admit(fresh))
        self._settle()

    def delete_pod(self, key: ObjectKey) -> None:
        """A pod is deleted; it holds its room until it is gone."""
        self._world.put_pod(replace(self._world.pods[key], is_terminating=True))
        self._settle()

    def start_vmi(self, vmi: VirtualMachineInstance, launcher: Pod) -> None:
        """A VM is started now, whatever state the two objects tell of.

        Raises: ConflictError if a VM or a pod of that name exists.
        """
        if vmi.key in self._world.vmis:
            raise ConflictError(f'virtualmachineinstances.kubevirt.io "{vmi.name}" already exists')
        starting = replace(vmi, phase="Scheduling", node_name=None, migration_state=None)
        self._world.put_vmi(starting)
        self.add_pod(replace(launcher, node_name=None))

    def delete_vmi(self, key: ObjectKey) -> None:
        """A VM is stopped; it is gone once its pods are."""
        self._world.note(f"VM {key} deleted")
        self._world.put_vmi(replace(self._world.vmis[key], is_terminating=True))
        self._settle()

    def put_node(self, node: Node) -> None:
        """A node joins, or takes the place of the one of that name."""
        self._world.put_node(node)
        self._settle()

    def cordon(self, name: str, *, is_unschedulable: bool = True) -> None:
        self._world.note(f"node {name} {'cordoned' if is_unschedulable else 'uncordoned'}")
        self.put_node(replace(self._world.nodes[name], is_unschedulable=is_unschedulable))

    # What goes wrong

    def script_migrations(self, vmi: ObjectKey, *outcomes: Outcome) -> None:
        """How the VM's next migrations end, one after the other; those after them succeed."""
        self._outcomes.add(vmi, *outcomes)

    def release(self, vmi: ObjectKey) -> None:
        """Lets the VM's stalled migration succeed."""
        self._migrations.release(vmi)
        self._settle()

    def fail_next(self, request: Request, error: Exception, *, after_effect: bool = False) -> None:
        """The next request of that name raises the error; `after_effect`: it was carried out all
        the same, only the answer was lost.
        """
        self._faults.add(request, error, after_effect=after_effect)

    def revoke_leadership(self) -> None:
        """Somebody else may have taken over from whoever leads now."""
        self._leadership.is_revoked = True

    def _settle(self) -> None:
        """Lets every controller act until none has anything left to do at this instant."""
        settled_version = -1
        while settled_version != self._world.version:
            settled_version = self._world.version
            self._kubelet.sync()
            self._vmis.sync()
            self._migrations.sync()
            self._scheduler.sync()
        self._world.check_room()

    def _lock_pod(self, hold: Hold) -> Pod:
        return replace(
            lock_pod(hold.name, hold.node_name, hold.admitted_uids),
            namespace=hold.namespace,
            uid=self._new_uid("pod", hold.name),
            phase="Pending",
            labels={GOAL_UID: hold.beneficiary_uid},
            created_at=self._agenda.now,
            priority=self._priority(hold),
            priority_class_name=hold.priority_class_name,
        )

    def _priority(self, hold: Hold) -> int:
        """A PriorityClass is known here by the pods that bear it."""
        name = hold.priority_class_name
        if not name:
            return 0
        for pod in self._world.pods.values():
            if pod.priority_class_name == name:
                return pod.priority
        raise RefusedError(
            f'pods "{hold.name}" is forbidden: no PriorityClass with name {name} was found'
        )

    def _lifetime_over(self, lock: Pod) -> None:
        pod = self._world.pods.get(lock.key)
        if pod is not None and pod.uid == lock.uid and not pod.is_finished:
            self._world.note(f"lock pod {lock.key} failed: DeadlineExceeded")
            self._world.put_pod(replace(pod, phase="Failed"))

    def _new_uid(self, kind: str, name: str) -> str:
        """Different for each object, the same in each run."""
        return str(uuid5(NAMESPACE_OID, f"{kind}/{name}/{len(self._world.journal)}"))


def _check_existing(found: Pod, wanted: Pod) -> None:
    """Raises: RefusedError if the pod that has the name does not hold what it should."""
    if (
        found.is_finished
        or found.is_terminating
        or (found.node_name, found.pod_anti_affinity)
        != (wanted.node_name, wanted.pod_anti_affinity)
    ):
        raise RefusedError(
            f"create pods {wanted.key}: there is one already, but not the lock of"
            f" {wanted.node_name} that is wanted"
        )


class SimulatedLeadership:
    def __init__(self) -> None:
        self.is_revoked = False

    def is_held(self) -> bool:
        return not self.is_revoked
