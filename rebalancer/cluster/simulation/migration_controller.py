"""virt-controller's and virt-handler's work on migrations.

Source: kubevirt/kubevirt v1.8.4 pkg/virt-controller/watch/migration/migration.go.
"""

from functools import partial

from msgspec.structs import replace

from rebalancer.cluster.simulation.agenda import Agenda
from rebalancer.cluster.simulation.scripts import Fail, Outcomes, Stall, Succeed
from rebalancer.cluster.simulation.world import World
from rebalancer.model.keys import HOSTNAME, MIGRATION_JOB_UID
from rebalancer.model.objects import (
    Migration,
    MigrationConfiguration,
    MigrationState,
    ObjectKey,
    Pod,
    VirtualMachineInstance,
)
from rebalancer.planning.cost import bytes_to_copy
from rebalancer.scheduling.target_pod import target_pod
from rebalancer.scheduling.target_selectors import lacks_host_model

_NEXT_PHASE = {
    "Scheduled": "PreparingTarget",
    "PreparingTarget": "TargetReady",
    "TargetReady": "Running",
}
_PHASE_SECONDS = 2.0
_UNSCHEDULABLE_TIMEOUT_SECONDS = 5 * 60
_PENDING_TIMEOUT_SECONDS = 15 * 60
_FINISHED_MIGRATIONS_KEPT = 5


class MigrationController:
    """Carries migrations on from whatever phase they are in.

    `target_hostnames` holds, by migration uid, the host name in `spec.addedNodeSelector`.
    """

    def __init__(
        self,
        world: World,
        agenda: Agenda,
        outcomes: Outcomes,
        configuration: MigrationConfiguration,
        *,
        bandwidth_bytes_per_second: int,
    ) -> None:
        self._world = world
        self._agenda = agenda
        self._outcomes = outcomes
        self._configuration = configuration
        limit = configuration.bandwidth_bytes_per_second or bandwidth_bytes_per_second
        self._bandwidth = min(limit, bandwidth_bytes_per_second)
        self._stalled: set[str] = set()
        self.target_hostnames: dict[str, str] = {}

    def sync(self) -> None:
        for migration in list(self._world.migrations.values()):
            if not migration.is_finished:
                self._sync(migration)

    def release(self, vmi: ObjectKey) -> None:
        """Lets the VM's stalled migration succeed.

        Raises: ValueError if none is stalled.
        """
        for migration in self._world.migrations.values():
            if migration.vmi_key == vmi and migration.uid in self._stalled:
                self._stalled.remove(migration.uid)
                self._succeed(migration)
                return
        raise ValueError(f"no migration of VM {vmi} is stalled")

    def _sync(self, migration: Migration) -> None:
        vmi = self._world.vmis.get(migration.vmi_key)
        target = self._target_of(migration)
        if vmi is None:
            self._fail(migration)
        elif not migration.phase:
            self._enter(migration, "Pending")
        elif migration.phase == "Pending" and target:
            self._enter(migration, "Scheduling")
        elif migration.phase == "Pending":
            if vmi.phase == "Running" and not vmi.is_terminating and self._may_start(vmi):
                self._create_target_pod(migration, vmi)
        elif target is None or target.is_finished or target.is_terminating:
            self._fail(migration)
        elif migration.phase == "Scheduling":
            self._sync_scheduling(migration, target)
        else:
            seconds = _PHASE_SECONDS
            if migration.phase == "Running":
                seconds = bytes_to_copy(vmi, target) / self._bandwidth
            phase_over = partial(self._phase_over, migration)
            self._agenda.once(migration.uid, migration.phase, seconds, phase_over)

    def _sync_scheduling(self, migration: Migration, target: Pod) -> None:
        if target.phase == "Running":
            self._enter(migration, "Scheduled")
            return
        check = partial(self._check_timeout, migration)
        for seconds in (_UNSCHEDULABLE_TIMEOUT_SECONDS, _PENDING_TIMEOUT_SECONDS):
            self._agenda.once(target.uid, f"after {seconds} s", seconds, check)

    def _check_timeout(self, migration: Migration) -> None:
        """Deletes a target pod that has waited too long, on which the migration fails.

        Without a failure reason: the VMI has not been told of the migration yet.
        """
        target = self._target_of(migration)
        if target is None or target.node_name or target.created_at is None:
            return
        pending_seconds = (self._agenda.now - target.created_at).total_seconds()
        if target.unschedulable_since or pending_seconds >= _PENDING_TIMEOUT_SECONDS:
            self._world.note(f"pod {target.key} deleted: no node within {pending_seconds:.0f} s")
            self._world.remove_pod(target)

    def _phase_over(self, migration: Migration) -> None:
        current = self._world.migrations.get(ObjectKey(migration.namespace, migration.name))
        if current is None or (current.uid, current.phase) != (migration.uid, migration.phase):
            return
        if current.phase == "Running":
            self._copied(current)
            return
        if current.phase == "Scheduled":
            vmi = self._world.vmis[current.vmi_key]
            state = MigrationState(migration_uid=current.uid)
            self._world.put_vmi(replace(vmi, migration_state=state))
        self._enter(current, _NEXT_PHASE[current.phase])

    def _copied(self, migration: Migration) -> None:
        match self._outcomes.take(migration.vmi_key):
            case Succeed():
                self._succeed(migration)
            case Fail(reason=reason):
                self._fail(migration, reason)
            case Stall():
                self._world.note(f"migration {migration.namespace}/{migration.name} stalls")
                self._stalled.add(migration.uid)

    def _succeed(self, migration: Migration) -> None:
        vmi = self._world.vmis[migration.vmi_key]
        target = self._target_of(migration)
        assert target is not None
        for pod in self._world.snapshot().launchers_by_vmi[vmi.uid]:
            if pod.key != target.key:
                self._world.put_pod(replace(pod, phase="Succeeded"))
        state = MigrationState(migration_uid=migration.uid, is_completed=True)
        self._world.put_vmi(replace(vmi, node_name=target.node_name, migration_state=state))
        self._enter(replace(migration, source_node_name=vmi.node_name or ""), "Succeeded")

    def _fail(self, migration: Migration, reason: str = "") -> None:
        self._stalled.discard(migration.uid)
        target = self._target_of(migration)
        if target and not (target.is_finished or target.is_terminating):
            self._world.put_pod(replace(target, phase="Failed"))
        vmi = self._world.vmis.get(migration.vmi_key)
        if vmi and vmi.migration_state and vmi.migration_state.migration_uid == migration.uid:
            failed = replace(vmi.migration_state, is_completed=True, is_failed=True)
            self._world.put_vmi(replace(vmi, migration_state=failed))
        self._enter(replace(migration, failure_reason=reason), "Failed")

    def _enter(self, migration: Migration, phase: str) -> None:
        because = f": {migration.failure_reason}" if migration.failure_reason else ""
        self._world.note(f"migration {migration.namespace}/{migration.name} is {phase}{because}")
        times = (*migration.phase_times, (phase, self._agenda.now))
        entered = replace(migration, phase=phase, phase_times=times)
        self._world.put_migration(entered)
        if entered.is_finished:
            self._forget_old_migrations(entered.vmi_key)

    def _forget_old_migrations(self, vmi: ObjectKey) -> None:
        migrations = self._world.snapshot().migrations_by_vmi[vmi]
        finished = [migration for migration in migrations if migration.is_finished]
        for migration in finished[:-_FINISHED_MIGRATIONS_KEPT]:
            self._world.remove_migration(migration)

    def _may_start(self, vmi: VirtualMachineInstance) -> bool:
        """Whether KubeVirt's limits let one more migration leave the VM's node.

        As there, migrations that are still Pending count once they have a target pod.
        """
        started = [
            migration
            for migration in self._world.migrations.values()
            if not migration.is_finished
            and (migration.phase not in {"", "Pending"} or self._target_of(migration))
        ]
        vmis = [self._world.vmis.get(migration.vmi_key) for migration in started]
        outbound = sum(other is not None and other.node_name == vmi.node_name for other in vmis)
        return (
            len(started) < self._configuration.parallel_migrations_per_cluster
            and outbound < self._configuration.parallel_outbound_migrations_per_node
        )

    def _create_target_pod(self, migration: Migration, vmi: VirtualMachineInstance) -> None:
        """Makes the pod, unless the VMI has other than one live pod or no host model is known."""
        snapshot = self._world.snapshot()
        live = snapshot.launchers_by_vmi.get(vmi.uid, ())
        source = self._world.nodes.get(vmi.node_name or "")
        if len(live) != 1 or source is None or lacks_host_model(vmi, live[0], source):
            return
        rendered = target_pod(vmi, live[0], snapshot)
        hostname = self.target_hostnames.get(migration.uid)
        added_selector = {} if hostname is None else {HOSTNAME: hostname}
        pod = replace(
            rendered,
            name=f"virt-launcher-{vmi.name}-{migration.uid[:5]}",
            uid=f"{migration.uid}-target",
            labels={**rendered.labels, MIGRATION_JOB_UID: migration.uid},
            node_selector={**added_selector, **rendered.node_selector},
            created_at=self._agenda.now,
            migration_uid=migration.uid,
        )
        self._world.note(
            f"pod {pod.key} created for migration {migration.namespace}/{migration.name}"
        )
        self._world.put_pod(pod)

    def _target_of(self, migration: Migration) -> Pod | None:
        """The migration's target pod, whatever has become of it."""
        pods = self._world.pods.values()
        return next((pod for pod in pods if pod.migration_uid == migration.uid), None)
