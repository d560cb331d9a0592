"""What one migration costs: seconds of copying, plus charges that are worth as many seconds."""

from rebalancer.model.keys import PREFER_NO_EVICTION
from rebalancer.model.objects import MigrationConfiguration, Node, Pod, VirtualMachineInstance
from rebalancer.model.plan import Cost
from rebalancer.policy.model import CostPolicy
from rebalancer.scheduling.filters.taint_toleration import untolerated


def bytes_to_copy(vmi: VirtualMachineInstance, pod: Pod) -> int:
    """Guest memory; what the launcher pod requests where the VMI does not say."""
    return vmi.guest_memory_bytes or pod.requests.get("memory", 0)


def copy_seconds(size_bytes: int, migrations: MigrationConfiguration, policy: CostPolicy) -> float:
    """How long copying takes at the assumed bandwidth, or at KubeVirt's limit if that is lower."""
    limit = migrations.bandwidth_bytes_per_second or policy.bandwidth_bytes_per_second
    return size_bytes / min(limit, policy.bandwidth_bytes_per_second)


def base_cost(
    vmi: VirtualMachineInstance,
    pod: Pod,
    migrations: MigrationConfiguration,
    policy: CostPolicy,
) -> Cost:
    """What moving the VMI costs wherever it goes."""
    terms = {
        "copy": copy_seconds(bytes_to_copy(vmi, pod), migrations, policy),
        "fixed": policy.fixed_seconds,
    }
    if PREFER_NO_EVICTION in vmi.annotations or PREFER_NO_EVICTION in pod.annotations:
        terms["preferNoEviction"] = policy.prefer_no_eviction_seconds or 0.0
    if pod.priority > 0 and policy.priority_seconds_per_thousand:
        terms["priority"] = pod.priority / 1000 * policy.priority_seconds_per_thousand
    return Cost(terms)


def target_charge(pod: Pod, target: Node, policy: CostPolicy) -> float:
    """What is charged besides for going to that node: one charge per soft taint."""
    soft_taints = untolerated(pod, target.taints, "PreferNoSchedule")
    return len(soft_taints) * policy.prefer_no_schedule_seconds


def with_target_charge(cost: Cost, charge: float) -> Cost:
    return Cost({**cost.terms, "preferNoSchedule": charge}) if charge else cost
