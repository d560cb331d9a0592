"""Whether a namespace lets one more launcher pod of a VM in, beside the one that runs.

Source: kubernetes v1.36.3 pkg/quota/v1/evaluator/core/pods.go; kubevirt/kubevirt v1.8.4
pkg/virt-controller/services/template.go (doesVMIRequireAutoResourceLimits) and renderresources.go.
"""

from collections.abc import Iterable, Iterator, Mapping

from rebalancer.model.keys import AUTO_MEMORY_LIMITS_RATIO
from rebalancer.model.objects import (
    EMPTY,
    Amounts,
    LauncherSpec,
    LimitRange,
    Pod,
    ResourceQuota,
    ScopeRequirement,
    VirtualMachineInstance,
)
from rebalancer.model.quantity import format_amount
from rebalancer.model.snapshot import Snapshot
from rebalancer.scheduling.attachment_pods import arriving_attachment
from rebalancer.scheduling.target_pod import arriving_requests

Usage = Mapping[str, int]
"""What a pod takes of a quota, by its keys."""

_DEFAULT_RATIO = 2.0


def quota_usage(vmi: VirtualMachineInstance, snapshot: Snapshot) -> Usage:
    """What the VM's second launcher pod will take; of the pods that follow it, too."""
    source_pod = snapshot.launchers_by_vmi[vmi.uid][0]
    requests = arriving_requests(vmi, source_pod, snapshot)
    usage = {"count/pods": requests["pods"]}
    for resource, amount in requests.items():
        usage[resource] = amount
        if resource != "pods":
            usage[f"requests.{resource}"] = amount
    for resource, amount in _limits(vmi, source_pod, requests, snapshot).items():
        usage[f"limits.{resource}"] = amount
    followers = arriving_attachment(vmi, source_pod, snapshot).get("pods", 0)
    if followers:
        for resource, limit in snapshot.launcher_configuration.attachment_limits.items():
            key = f"limits.{resource}"
            usage[key] = usage.get(key, 0) + limit * followers
    return usage


def quota_problem(
    vmi: VirtualMachineInstance, snapshot: Snapshot, ours: Iterable[Usage] = ()
) -> str | None:
    """Why a quota refuses the VM's second launcher pod, in numbers.

    `ours`: usages of pods in the namespace that are to come and that the quotas do not count yet.
    """
    quotas = snapshot.quotas_by_namespace.get(vmi.namespace, ())
    if not quotas:
        return None
    pod = snapshot.launchers_by_vmi[vmi.uid][0]
    usage = quota_usage(vmi, snapshot)
    others = list(ours)
    for quota in quotas:
        if all(_may_hold(scope, pod) for scope in quota.scopes):
            for key, amount in usage.items():
                coming = sum(other.get(key, 0) for other in others)
                if problem := _exceeded(quota, key, amount, coming):
                    return problem
    return None


def limit_range_problem(vmi: VirtualMachineInstance, snapshot: Snapshot) -> str | None:
    """Why a LimitRange refuses the VM's second launcher pod.

    Only what may have changed since the first one was let in: `max`, and default limits below what
    is requested. All containers together stand for the largest, which errs to the safe side.
    """
    ranges = snapshot.limit_ranges_by_namespace.get(vmi.namespace, ())
    if not ranges:
        return None
    source_pod = snapshot.launchers_by_vmi[vmi.uid][0]
    requests = arriving_requests(vmi, source_pod, snapshot)
    limits = _limits(vmi, source_pod, requests, snapshot)
    return next(_beyond(ranges, requests, limits), None)


def _exceeded(quota: ResourceQuota, key: str, amount: int, coming: int) -> str | None:
    hard = quota.hard.get(key)
    if hard is None or not amount:
        return None
    used = quota.used.get(key)
    where = f"ResourceQuota {quota.namespace}/{quota.name}: {key}"
    if used is None:
        return f"{where}: how much of it is used has not been counted yet"
    left = hard - used - coming
    if amount <= left:
        return None
    resource = key.removeprefix("requests.").removeprefix("limits.")
    return (
        f"{where}: a second launcher pod takes {format_amount(amount, resource)},"
        f" {format_amount(max(left, 0), resource)} of {format_amount(hard, resource)} is left"
    )


def _may_hold(scope: ScopeRequirement, pod: Pod) -> bool:
    """Whether a quota of that scope counts the pod; one that is not known here is taken to.

    A launcher pod has requests, and no deadline.
    """
    if scope.scope in {"BestEffort", "Terminating"}:
        return False
    if scope.scope != "PriorityClass":
        return True
    name = pod.priority_class_name
    match scope.operator:
        case "In":
            return name in scope.values
        case "NotIn":
            return name not in scope.values
        case "DoesNotExist":
            return not name
        case _:
            return bool(name)


def _limits(
    vmi: VirtualMachineInstance, source_pod: Pod, requests: Amounts, snapshot: Snapshot
) -> Amounts:
    """The source pod's limits, grown as its requests do.

    What the virtual machine's own container lacks is put in by virt-controller once a quota of the
    namespace asks for it; then the pod's limits are only those of the small containers beside it.
    """
    limits = {}
    for resource, limit in source_pod.limits.items():
        before, after = source_pod.requests.get(resource, 0), requests.get(resource, 0)
        limits[resource] = -(-limit * after // before) if after > before > 0 else limit
    spec = vmi.launcher or LauncherSpec()
    vcpus = 1 if spec.vcpus is None else spec.vcpus
    automatic = {
        "memory": int(requests.get("memory", 0) * _memory_ratio(vmi, snapshot)),
        "cpu": (vcpus + spec.io_threads) * 1000,
    }
    quotas = snapshot.quotas_by_namespace.get(vmi.namespace, ())
    for resource, limit in automatic.items():
        lacks_it = source_pod.limits.get(resource, 0) < source_pod.requests.get(resource, 0)
        if lacks_it and any(f"limits.{resource}" in quota.hard for quota in quotas):
            limits[resource] = limits.get(resource, 0) + limit
    return limits


def _memory_ratio(vmi: VirtualMachineInstance, snapshot: Snapshot) -> float:
    labels = snapshot.labels_by_namespace.get(vmi.namespace, EMPTY)
    try:
        ratio = float(labels.get(AUTO_MEMORY_LIMITS_RATIO, _DEFAULT_RATIO))
    except ValueError:
        return _DEFAULT_RATIO
    return ratio if ratio >= 1 else _DEFAULT_RATIO


def _beyond(ranges: Iterable[LimitRange], requests: Amounts, limits: Amounts) -> Iterator[str]:
    for limit_range in ranges:
        where = f"LimitRange {limit_range.namespace}/{limit_range.name}"
        for item in limit_range.items:
            if item.type not in {"Pod", "Container"}:
                continue
            for resource, most in item.max.items():
                amount = max(limits.get(resource, 0), requests.get(resource, 0))
                if amount > most:
                    yield (
                        f"{where}: a launcher pod of it takes {format_amount(amount, resource)} of"
                        f" {resource}, at most {format_amount(most, resource)} is allowed"
                    )
            for resource, default in item.default_limit.items():
                if resource not in limits and requests.get(resource, 0) > default:
                    yield (
                        f"{where}: its default limit of {format_amount(default, resource)}"
                        f" {resource} is below what a launcher pod of it requests"
                    )
