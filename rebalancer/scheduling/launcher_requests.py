"""What a launcher pod that virt-controller would render now asks for.

Source: kubevirt/kubevirt v1.8.4 pkg/virt-controller/services/renderresources.go and template.go
(VMIResourcePredicates), serialconsolelog.go, pkg/hypervisor/kvm/hypervisorbackend.go
(GetMemoryOverhead).
"""

from rebalancer.model.objects import Amounts, LauncherConfiguration, LauncherSpec, Pod
from rebalancer.model.quantity import parse_amount

_MIB = 2**20
_KILO = 1000
_COMPONENTS_BYTES = (25 + 100 + 25 + 40 + 30) * _MIB
"""virt-launcher-monitor, virt-launcher, virtlogd, virtqemud and QEMU itself."""
_PER_VCPU_BYTES = 8 * _MIB
_IO_THREAD_BYTES = 8 * _MIB
_GUARANTEED_BYTES = 100 * _MIB
_CONSOLE_LOG = "guest-console-log"
_COMPUTE = "compute"


def target_requests(
    source_pod: Pod,
    spec: LauncherSpec,
    configuration: LauncherConfiguration,
    networks: Amounts,
) -> Amounts:
    """Of each resource what the target will ask for; never less than the source pod does.

    Containers beside the virtual machine's own, devices and ephemeral storage are taken from the
    source pod: they come from parts of the VMI that cannot change while it runs. `networks` is what
    its secondary networks ask for now.
    """
    compute = source_pod.launcher_containers.get(_COMPUTE)
    if compute is None:
        return source_pod.requests
    rendered = {**compute, **networks, **compute_requests(spec, configuration)}
    if _logs_console(spec, configuration) and _CONSOLE_LOG not in source_pod.launcher_containers:
        for resource, amount in _console_log(spec, configuration).items():
            rendered[resource] = rendered.get(resource, 0) + amount
    target = dict(source_pod.requests)
    for resource, amount in rendered.items():
        others = source_pod.requests.get(resource, 0) - compute.get(resource, 0)
        target[resource] = max(target.get(resource, 0), amount + max(others, 0))
    return source_pod.requests if target == source_pod.requests else target


def launcher_requests(spec: LauncherSpec, configuration: LauncherConfiguration) -> Amounts:
    """Of the pod for a plain VM that does not exist yet, without devices; its slot included."""
    requests = {**compute_requests(spec, configuration), "pods": 1}
    if _logs_console(spec, configuration):
        for resource, amount in _console_log(spec, configuration).items():
            requests[resource] = requests.get(resource, 0) + amount
    return requests


def compute_requests(spec: LauncherSpec, configuration: LauncherConfiguration) -> Amounts:
    """CPU, memory and huge pages of the container `compute`."""
    requests = {"cpu": _cpu_millicores(spec, configuration)}
    overhead = overhead_bytes(spec, configuration)
    memory = _memory_bytes(spec, configuration)
    if spec.huge_page_size:
        guest = spec.guest_memory_bytes
        pages = memory if guest is None else min(memory, guest)
        requests[f"hugepages-{spec.huge_page_size}"] = pages
        memory -= pages
    if not spec.overcommits_overhead or spec.huge_page_size:
        memory += overhead
    requests["memory"] = memory
    return requests


def overhead_bytes(spec: LauncherSpec, configuration: LauncherConfiguration) -> int:
    """Memory besides the guest's.

    The page tables' share is counted of what the VMI itself requests, and is 0 where it leaves
    the request to be derived.
    """
    kilobytes = -(-spec.requests.get("memory", 0) // _KILO)
    total = kilobytes * _KILO // 512 + _COMPONENTS_BYTES + _IO_THREAD_BYTES
    total += _PER_VCPU_BYTES * _vcpus_of_overhead(spec)
    total += spec.device_overhead_bytes
    if spec.has_dedicated_cpus or _wants_guaranteed(spec):
        total += _GUARANTEED_BYTES
    extra = -(-total // _KILO) * (configuration.overhead_ratio - 1.0)
    total += int(extra) * _KILO
    plugins = configuration.binding_memory_bytes
    return total + sum(plugins.get(name, 0) for name in spec.bindings)


def _memory_bytes(spec: LauncherSpec, configuration: LauncherConfiguration) -> int:
    """The guest's share of the request: as asked for, else the limit, else what the guest has."""
    if asked := spec.requests.get("memory") or spec.limits.get("memory"):
        return asked
    if "memory" in spec.requests:
        return 0
    guest = spec.guest_memory_bytes
    if guest is None:
        guest = parse_amount(spec.huge_page_size or "0", "memory")
    return guest * 100 // configuration.memory_overcommit_percent


def _cpu_millicores(spec: LauncherSpec, configuration: LauncherConfiguration) -> int:
    if not spec.has_dedicated_cpus:
        if (asked := spec.requests.get("cpu")) is not None:
            return asked
        vcpus = 1 if spec.vcpus is None else spec.vcpus
        return -(-(vcpus + spec.io_threads) * 1000 // configuration.cpu_allocation_ratio)
    vcpus = spec.vcpus or 0
    whole = spec.requests.get("cpu", spec.limits.get("cpu", 0)) if not vcpus else vcpus * 1000
    cpu = whole + spec.io_threads * 1000
    if spec.isolates_emulator_thread:
        # Millicores would be rounded up to whole CPUs by Quantity.Value.
        is_even = (-(-cpu // 1000) + spec.io_threads) % 2 == 0
        cpu += 2000 if spec.completes_even_parity and is_even else 1000
    return cpu


def _vcpus_of_overhead(spec: LauncherSpec) -> int:
    if spec.vcpus is not None:
        return max(spec.vcpus, 1)
    millicores = spec.limits.get("cpu", spec.requests.get("cpu", 0))
    return max(-(-millicores // 1000), 1)


def _wants_guaranteed(spec: LauncherSpec) -> bool:
    memory, memory_limit = spec.requests.get("memory", 0), spec.limits.get("memory", 0)
    cpu = spec.requests.get("cpu", 0)
    wants_memory = memory == memory_limit if memory else memory_limit > 0
    return wants_memory and cpu > 0 and cpu == spec.limits.get("cpu", 0)


def _logs_console(spec: LauncherSpec, configuration: LauncherConfiguration) -> bool:
    if spec.logs_serial_console is None:
        return configuration.logs_serial_console
    return spec.logs_serial_console


def _console_log(spec: LauncherSpec, configuration: LauncherConfiguration) -> Amounts:
    if spec.has_dedicated_cpus or _wants_guaranteed(spec):
        return configuration.console_log_limits
    return configuration.console_log_requests
