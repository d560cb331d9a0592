"""What bars a VM from being moved, each with a code of its own."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from rebalancer.model import keys
from rebalancer.model.objects import Migration, Node, Pod, VirtualMachineInstance
from rebalancer.model.plan import Refusal
from rebalancer.model.snapshot import Snapshot
from rebalancer.model.wording import count_of
from rebalancer.scheduling.namespace_limits import limit_range_problem, quota_problem
from rebalancer.scheduling.secondary_networks import network_problem
from rebalancer.scheduling.target_selectors import has_host_model, needs_host_model

Problem = tuple[str, str] | None


class Movability:
    """Judges the VMs of one snapshot; what is to be said of a source node is found out once.

    `may_move_reluctant`: VMs marked prefer-no-eviction may be moved, for a charge.
    `checks_quotas`: quotas count while VMs migrate; some distributions lift them for that time.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        *,
        failure_backoff_seconds: int,
        cooldown_seconds: int,
        may_move_reluctant: bool,
        checks_quotas: bool,
    ) -> None:
        self._snapshot = snapshot
        self._failure_backoff_seconds = failure_backoff_seconds
        self._cooldown_seconds = cooldown_seconds
        self._may_move_reluctant = may_move_reluctant
        self._checks_quotas = checks_quotas
        self._sources: dict[str, _Source] = {}

    def refusal(self, vmi: VirtualMachineInstance) -> Refusal | None:
        """Why the VM must stay, or None when it may leave its node."""
        launchers = self._snapshot.launchers_by_vmi.get(vmi.uid, ())
        problem = (
            _not_running(vmi, launchers)
            or self._stuck_launcher(vmi, launchers[0])
            or self._opted_out(vmi, launchers[0])
            or _not_migratable(vmi)
            or self._busy(vmi)
            or _not_let_in(vmi, self._snapshot, checks_quotas=self._checks_quotas)
        )
        return problem and Refusal(vmi.key, *problem)

    def _stuck_launcher(self, vmi: VirtualMachineInstance, pod: Pod) -> Problem:
        source = self._source(pod.node_name)
        if source is None or vmi.node_name != pod.node_name:
            return "node-unknown", (
                f"its launcher pod is on node {pod.node_name or 'none'}, the VMI on"
                f" {vmi.node_name or 'none'}; both must name one known node"
            )
        if pod.is_terminating:
            return "terminating", f"its launcher pod {pod.name} is being deleted"
        if source.problem:
            return source.problem
        if pod.scheduler_name != "default-scheduler":
            return "foreign-scheduler", f"it is placed by scheduler {pod.scheduler_name}"
        if pod.unmodelled:
            return "unmodelled", f"its placement depends on {', '.join(pod.unmodelled)}"
        if not source.has_host_model and needs_host_model(vmi, pod):
            return "no-host-model", (
                f"node {pod.node_name} has no host-model-cpu.node.kubevirt.io label"
            )
        if vmi.launcher and (problem := network_problem(vmi.launcher, self._snapshot)):
            return "network-gone", problem
        return None

    def _source(self, node_name: str | None) -> "_Source | None":
        source = self._sources.get(node_name or "")
        if source is None and (node := self._snapshot.node_by_name.get(node_name or "")):
            source = self._sources[node.name] = _Source(_node_problem(node), has_host_model(node))
        return source

    def _opted_out(self, vmi: VirtualMachineInstance, pod: Pod) -> Problem:
        annotations = {**pod.annotations, **vmi.annotations} if pod.annotations else vmi.annotations
        if annotations.get(keys.OPT_OUT, "false") != "false":
            return "opted-out", f"annotation {keys.OPT_OUT} keeps it where it is"
        if keys.EVICTION_IN_PROGRESS in annotations:
            return "eviction-in-progress", f"annotation {keys.EVICTION_IN_PROGRESS}: hands off"
        if keys.PREFER_NO_EVICTION in annotations and not self._may_move_reluctant:
            return "prefers-no-eviction", (
                f"annotation {keys.PREFER_NO_EVICTION} asks not to move it;"
                " cost.preferNoEvictionSeconds in the policy would allow it for a charge"
            )
        settings = self._snapshot.launcher_configuration
        if (vmi.eviction_strategy or settings.eviction_strategy) == "External":
            whose = "" if vmi.eviction_strategy else " (the KubeVirt CR's, for VMs that name none)"
            return "eviction-external", f"evictionStrategy External{whose}: its owner moves it"
        return None

    def _busy(self, vmi: VirtualMachineInstance) -> Problem:
        migrations = self._snapshot.migrations_by_vmi.get(vmi.key, ())
        problem = _under_way(vmi, migrations) or _about_to_change(vmi)
        if problem or not migrations:
            return problem
        now = self._snapshot.taken_at
        return _backing_off(migrations, now, self._failure_backoff_seconds) or _cooling_down(
            migrations, now, self._cooldown_seconds
        )


class _Source(NamedTuple):
    """What is to be said of a node that VMs may leave."""

    problem: Problem
    has_host_model: bool


def _not_running(vmi: VirtualMachineInstance, launchers: Sequence[Pod]) -> Problem:
    if vmi.phase != "Running":
        return "not-running", f"its phase is {vmi.phase}; only running VMs are moved"
    if vmi.is_terminating:
        return "terminating", "it is being deleted"
    if len(launchers) != 1:
        names = ", ".join(pod.name for pod in launchers)
        return "launcher-pods", f"it has {len(launchers)} live launcher pods, not one ({names})"
    return None


def _node_problem(source: Node) -> Problem:
    if not source.is_ready:
        return "node-not-ready", f"node {source.name} is not ready"
    if source.labels.get(keys.SCHEDULABLE) != "true":
        return "virt-handler-silent", (
            f"node {source.name} is not labelled {keys.SCHEDULABLE}=true, so its virt-handler"
            " may not answer"
        )
    return None


def _not_migratable(vmi: VirtualMachineInstance) -> Problem:
    if len(vmi.name) > keys.LONGEST_LABEL_VALUE:
        return "name-too-long", (
            f"its name has {len(vmi.name)} characters, and KubeVirt puts it into a label of its"
            f" migrations, which takes {keys.LONGEST_LABEL_VALUE}"
        )
    condition = vmi.live_migratable
    if condition is None:
        return "not-yet-migratable", "KubeVirt has not said yet whether it can be live-migrated"
    if condition.status != "True":
        detail = ": ".join(part for part in (condition.reason, condition.message) if part)
        return "not-live-migratable", f"KubeVirt cannot live-migrate it ({detail or 'no reason'})"
    return None


def _under_way(vmi: VirtualMachineInstance, migrations: Sequence[Migration]) -> Problem:
    if vmi.evacuation_node_name:
        return "evacuating", f"KubeVirt is evacuating it from node {vmi.evacuation_node_name}"
    for migration in migrations:
        if not migration.is_finished:
            return "migration-in-flight", f"migration {migration.name} is under way"
    return None


def _about_to_change(vmi: VirtualMachineInstance) -> Problem:
    if vmi.pending_changes:
        return "pending-change", (
            f"condition {', '.join(vmi.pending_changes)}: KubeVirt is about to migrate it by itself"
        )
    if vmi.running_backup:
        return "backup-running", f"a migration would wait for backup {vmi.running_backup}"
    if vmi.utility_volumes:
        return "utility-volumes", (
            f"a migration would wait for utility volumes {', '.join(vmi.utility_volumes)} to be"
            " detached"
        )
    state = vmi.migration_state
    if state is not None and not (state.is_completed or state.is_failed):
        return "ghost-migration", (
            f"its status tells of migration {state.migration_uid}, which has not ended and no"
            " longer exists; left alone until somebody has looked what became of it"
        )
    return None


def _backing_off(
    migrations: Sequence[Migration], now: datetime, failure_backoff_seconds: int
) -> Problem:
    """Failures in a row, as far as KubeVirt keeps them (the last five), double the wait."""
    failed: list[Migration] = []
    for migration in reversed(migrations):
        if migration.phase != "Failed":
            break
        failed.append(migration)
    ended_at = failed[0].ended_at if failed else None
    if ended_at is None:
        return None
    wait_seconds = failure_backoff_seconds * 2 ** (len(failed) - 1)
    until: datetime = ended_at + timedelta(seconds=wait_seconds)
    if until <= now:
        return None
    return "failure-backoff", (
        f"its last {count_of(len(failed), 'migration')} failed"
        f" ({failed[0].failure_reason or 'no reason given'}); left alone until"
        f" {until.isoformat(timespec='seconds')}"
    )


def _cooling_down(migrations: Sequence[Migration], now: datetime, cooldown_seconds: int) -> Problem:
    """Whoever moved it: a guest that has just moved is left in peace."""
    ends = [
        migration.ended_at
        for migration in migrations
        if migration.phase == "Succeeded" and migration.ended_at is not None
    ]
    until = max(ends, default=now) + timedelta(seconds=cooldown_seconds)
    if not ends or until <= now:
        return None
    return "cooldown", (
        f"it moved at {max(ends).isoformat(timespec='seconds')}; left alone until"
        f" {until.isoformat(timespec='seconds')} (execution.cooldownSeconds)"
    )


def _not_let_in(vmi: VirtualMachineInstance, snapshot: Snapshot, *, checks_quotas: bool) -> Problem:
    if checks_quotas and (problem := quota_problem(vmi, snapshot)):
        return "quota", problem
    if problem := limit_range_problem(vmi, snapshot):
        return "limit-range", problem
    return None
