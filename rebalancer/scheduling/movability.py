"""What bars a VM from being moved, each with a code of its own."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from rebalancer.model import keys
from rebalancer.model.objects import LauncherSpec, Migration, Pod, VirtualMachineInstance
from rebalancer.model.plan import Refusal
from rebalancer.model.snapshot import Snapshot
from rebalancer.scheduling.namespace_limits import limit_range_problem, quota_problem
from rebalancer.scheduling.secondary_networks import network_problem
from rebalancer.scheduling.target_selectors import lacks_host_model


def refusal(
    vmi: VirtualMachineInstance,
    snapshot: Snapshot,
    *,
    failure_backoff_seconds: int,
    cooldown_seconds: int,
    may_move_reluctant: bool,
    checks_quotas: bool,
) -> Refusal | None:
    """Why the VM must stay, or None when it may leave its node.

    `may_move_reluctant`: VMs marked prefer-no-eviction may be moved, for a charge.
    `checks_quotas`: quotas count while VMs migrate; some distributions lift them for that time.
    """
    problem = (
        _not_running(vmi, snapshot)
        or _opted_out(vmi, snapshot, may_move_reluctant=may_move_reluctant)
        or _not_migratable(vmi)
        or _busy(vmi, snapshot)
        or _too_soon(vmi, snapshot, failure_backoff_seconds, cooldown_seconds)
        or _not_let_in(vmi, snapshot, checks_quotas=checks_quotas)
    )
    return problem and Refusal(vmi.key, *problem)


Problem = tuple[str, str] | None


def _not_running(vmi: VirtualMachineInstance, snapshot: Snapshot) -> Problem:
    if vmi.phase != "Running":
        return "not-running", f"its phase is {vmi.phase}; only running VMs are moved"
    if vmi.is_terminating:
        return "terminating", "it is being deleted"
    launchers = snapshot.launchers_by_vmi.get(vmi.uid, ())
    if len(launchers) != 1:
        names = ", ".join(pod.name for pod in launchers)
        return "launcher-pods", f"it has {len(launchers)} live launcher pods, not one ({names})"
    return _launcher_problem(vmi, launchers[0], snapshot)


def _launcher_problem(vmi: VirtualMachineInstance, pod: Pod, snapshot: Snapshot) -> Problem:
    source = snapshot.node_by_name.get(pod.node_name or "")
    if source is None or vmi.node_name != source.name:
        return "node-unknown", (
            f"its launcher pod is on node {pod.node_name or 'none'}, the VMI on"
            f" {vmi.node_name or 'none'}; both must name one known node"
        )
    if pod.is_terminating:
        return "terminating", f"its launcher pod {pod.name} is being deleted"
    if not source.is_ready:
        return "node-not-ready", f"node {source.name} is not ready"
    if source.labels.get(keys.SCHEDULABLE) != "true":
        return "virt-handler-silent", (
            f"node {source.name} is not labelled {keys.SCHEDULABLE}=true, so its virt-handler"
            " may not answer"
        )
    if pod.scheduler_name != "default-scheduler":
        return "foreign-scheduler", f"it is placed by scheduler {pod.scheduler_name}"
    if pod.unmodelled:
        return "unmodelled", f"its placement depends on {', '.join(pod.unmodelled)}"
    if lacks_host_model(vmi, pod, source):
        return "no-host-model", f"node {source.name} has no host-model-cpu.node.kubevirt.io label"
    if problem := network_problem(vmi.launcher or LauncherSpec(), snapshot):
        return "network-gone", problem
    return None


def _opted_out(
    vmi: VirtualMachineInstance, snapshot: Snapshot, *, may_move_reluctant: bool
) -> Problem:
    pod = snapshot.pod_of_vmi(vmi)
    annotations = {**(pod.annotations if pod else {}), **vmi.annotations}
    if annotations.get(keys.OPT_OUT, "false") != "false":
        return "opted-out", f"annotation {keys.OPT_OUT} keeps it where it is"
    if keys.EVICTION_IN_PROGRESS in annotations:
        return "eviction-in-progress", f"annotation {keys.EVICTION_IN_PROGRESS}: hands off"
    if keys.PREFER_NO_EVICTION in annotations and not may_move_reluctant:
        return "prefers-no-eviction", (
            f"annotation {keys.PREFER_NO_EVICTION} asks not to move it;"
            " cost.preferNoEvictionSeconds in the policy would allow it for a charge"
        )
    strategy = vmi.eviction_strategy or snapshot.launcher_configuration.eviction_strategy
    if strategy == "External":
        whose = "" if vmi.eviction_strategy else " (the KubeVirt CR's, for VMs that name none)"
        return "eviction-external", f"evictionStrategy External{whose}: its owner moves it"
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


def _busy(vmi: VirtualMachineInstance, snapshot: Snapshot) -> Problem:
    if vmi.evacuation_node_name:
        return "evacuating", f"KubeVirt is evacuating it from node {vmi.evacuation_node_name}"
    migrations = snapshot.migrations_by_vmi.get(vmi.key, ())
    for migration in migrations:
        if not migration.is_finished:
            return "migration-in-flight", f"migration {migration.name} is under way"
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


def _too_soon(
    vmi: VirtualMachineInstance,
    snapshot: Snapshot,
    failure_backoff_seconds: int,
    cooldown_seconds: int,
) -> Problem:
    migrations = snapshot.migrations_by_vmi.get(vmi.key)
    if not migrations:
        return None
    now = snapshot.taken_at
    return _backing_off(migrations, now, failure_backoff_seconds) or _cooling_down(
        migrations, now, cooldown_seconds
    )


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
        f"its last {len(failed)} migration{'s'[: len(failed) > 1]} failed"
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
