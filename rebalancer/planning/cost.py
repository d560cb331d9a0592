"""What one migration costs: seconds of copying, plus charges that are worth as many seconds."""

from collections.abc import Mapping
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from rebalancer.model.keys import PREFER_NO_EVICTION, ZONE
from rebalancer.model.objects import MigrationConfiguration, Node, Pod, VirtualMachineInstance
from rebalancer.model.plan import Cost
from rebalancer.model.snapshot import Snapshot
from rebalancer.policy.model import CostPolicy
from rebalancer.scheduling.filters.taint_toleration import untolerated
from rebalancer.scheduling.migration_policy import migration_configuration
from rebalancer.scheduling.state import ClusterState

_RECENT = timedelta(days=1)

FloatArray = NDArray[np.float64]


def bytes_to_copy(vmi: VirtualMachineInstance, pod: Pod) -> int:
    """Guest memory; what the launcher pod requests where the VMI does not say."""
    return vmi.guest_memory_bytes or pod.requests.get("memory", 0)


def copy_seconds(size_bytes: int, migrations: MigrationConfiguration, policy: CostPolicy) -> float:
    """How long copying takes at the assumed bandwidth, or at KubeVirt's limit if that is lower."""
    limit = migrations.bandwidth_bytes_per_second or policy.bandwidth_bytes_per_second
    return size_bytes / min(limit, policy.bandwidth_bytes_per_second)


def base_cost(
    vmi: VirtualMachineInstance, pod: Pod, snapshot: Snapshot, policy: CostPolicy
) -> Cost:
    """What moving the VMI costs wherever it goes; terms that are 0 are left out."""
    migrations = migration_configuration(vmi, snapshot)
    terms = {
        "copy": copy_seconds(bytes_to_copy(vmi, pod), migrations, policy),
        "fixed": policy.fixed_seconds,
        **_of_the_past(vmi, snapshot, policy),
    }
    if prefers_no_eviction(vmi, pod):
        terms["preferNoEviction"] = policy.prefer_no_eviction_seconds or 0.0
    if pod.priority > 0:
        terms["priority"] = pod.priority / 1000 * policy.priority_seconds_per_thousand
    return Cost({name: seconds for name, seconds in terms.items() if seconds})


def prefers_no_eviction(vmi: VirtualMachineInstance, pod: Pod) -> bool:
    return PREFER_NO_EVICTION in vmi.annotations or PREFER_NO_EVICTION in pod.annotations


def _of_the_past(
    vmi: VirtualMachineInstance, snapshot: Snapshot, policy: CostPolicy
) -> Mapping[str, float]:
    """Charges for what migrations of the last day came to, as far as KubeVirt has kept them.

    They hold for the whole day: a charge that fell little by little would let a move pay in a cycle
    without anything having changed in the cluster.
    """
    failures, has_moved = 0, False
    for migration in snapshot.migrations_by_vmi.get(vmi.key, ()):
        ended_at = migration.ended_at
        if ended_at is None or ended_at + _RECENT <= snapshot.taken_at:
            continue
        if migration.phase == "Failed":
            failures += 1
        else:
            has_moved = True
    return {
        "recentFailures": failures * policy.recent_failure_seconds,
        "recentMove": has_moved * policy.recent_move_seconds,
    }


def target_charges(
    pod: Pod, source: Node, state: ClusterState, policy: CostPolicy
) -> Mapping[str, FloatArray]:
    """What is charged besides for going to each node, by term; terms that are 0 are left out.

    Axis of the arrays: node. Seconds.
    """
    soft_taints = np.zeros(len(state.nodes))
    for taints, nodes in state.nodes_by_taints.items():
        soft_taints[nodes] = len(untolerated(pod, taints, "PreferNoSchedule"))
    terms = {
        "preferNoSchedule": soft_taints * policy.prefer_no_schedule_seconds,
        "otherZone": _leaves_zone(source, state) * policy.other_zone_seconds,
    }
    return {name: seconds for name, seconds in terms.items() if seconds.any()}


def _leaves_zone(source: Node, state: ClusterState) -> FloatArray:
    zone = source.labels.get(ZONE)
    if zone is None:
        return np.zeros(len(state.nodes))
    return (~state.has_label(ZONE, zone)).astype(np.float64)


def with_target_charges(cost: Cost, charges: Mapping[str, FloatArray], node: int) -> Cost:
    there = {name: float(seconds[node]) for name, seconds in charges.items()}
    return Cost({**cost.terms, **{name: seconds for name, seconds in there.items() if seconds}})
