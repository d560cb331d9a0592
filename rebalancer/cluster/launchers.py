"""What a VMI and the KubeVirt CR on the wire say about launcher pods.

Source: kubevirt/kubevirt v1.8.4 pkg/virt-controller/services/template.go and
nodeselectorrenderer.go, pkg/hypervisor/kvm/hypervisorbackend.go, pkg/network/resources/memory.go.
"""

from collections.abc import Iterable, Iterator, Mapping

from rebalancer.cluster import wire
from rebalancer.cluster.constraints import Constraints
from rebalancer.cluster.fields import FieldError, amount, amounts
from rebalancer.model.keys import CPU_FEATURE, EVEN_PARITY
from rebalancer.model.objects import EMPTY, Amounts, LauncherConfiguration, LauncherSpec, ObjectKey

_MIB = 2**20
_NETWORK = "spec.configuration.network.binding"


def launcher_spec(
    metadata: wire.Metadata,
    spec: wire.VirtualMachineInstanceSpec,
    status: wire.VirtualMachineInstanceStatus,
    constraints: Constraints,
) -> LauncherSpec:
    """Raises: FieldError."""
    domain = spec.domain or wire.Domain()
    resources = domain.resources or wire.DomainResources()
    memory = domain.memory or wire.DomainMemory()
    cpu = domain.cpu or wire.DomainCPU()
    devices = domain.devices or wire.Devices()
    hugepages = memory.hugepages or wire.HugePages()
    io_threads = domain.io_threads or wire.IOThreads()
    affinity = constraints.affinity(
        spec.affinity, metadata.namespace or "", metadata.labels or EMPTY
    )
    field = "spec.domain.resources"
    return LauncherSpec(
        requests=amounts(resources.requests, f"{field}.requests"),
        limits=amounts(resources.limits, f"{field}.limits"),
        guest_memory_bytes=None
        if memory.guest is None
        else amount(memory.guest, "spec.domain.memory.guest"),
        huge_page_size=hugepages.page_size or "",
        overcommits_overhead=bool(resources.overcommit_guest_overhead),
        vcpus=None if domain.cpu is None else _vcpus(domain.cpu),
        io_threads=io_threads.supplemental_pool_thread_count or 0,
        has_dedicated_cpus=bool(cpu.dedicated_cpu_placement),
        isolates_emulator_thread=bool(cpu.isolate_emulator_thread),
        completes_even_parity=EVEN_PARITY in (metadata.annotations or EMPTY),
        device_overhead_bytes=_device_overhead_bytes(spec, domain, memory),
        bindings=_bindings(devices),
        networks=tuple(_networks(metadata, spec)),
        hotplugged_claims=tuple(_hotplugged_claims(spec, status)),
        logs_serial_console=False
        if devices.autoattach_serial_console is False
        else devices.log_serial_console,
        machine_type=_machine_type(status.machine) or _machine_type(domain.machine),
        hyperv_labels=tuple(_hyperv_labels(domain.features)),
        rejected_labels=tuple(_rejected_labels(cpu)),
        node_affinity=affinity.node_terms,
        pod_affinity=affinity.pod,
        pod_anti_affinity=affinity.pod_anti,
        tolerations=constraints.tolerations(spec.tolerations),
    )


def launcher_configuration(configuration: wire.KubeVirtConfiguration) -> LauncherConfiguration:
    """Raises: FieldError."""
    developer = configuration.developer_configuration or wire.DeveloperConfiguration()
    options = configuration.virtual_machine_options or wire.VirtualMachineOptions()
    defaults = LauncherConfiguration()
    supports = configuration.support_container_resources or ()
    console = _support_container("guest-console-log", supports)
    attachment = _support_container("hotplug-disk", supports)
    return LauncherConfiguration(
        memory_overcommit_percent=developer.memory_overcommit or defaults.memory_overcommit_percent,
        cpu_allocation_ratio=developer.cpu_allocation_ratio or defaults.cpu_allocation_ratio,
        overhead_ratio=_ratio(configuration.additional_guest_memory_overhead_ratio),
        node_selector=developer.node_selectors or EMPTY,
        checks_hyperv="HypervStrictCheck" in (developer.feature_gates or ()),
        logs_serial_console=options.disable_serial_console_log is None,
        console_log_requests={**defaults.console_log_requests, **console[0]},
        console_log_limits={**defaults.console_log_limits, **console[1]},
        attachment_requests={**defaults.attachment_requests, **attachment[0]},
        attachment_limits={**defaults.attachment_limits, **attachment[1]},
        binding_memory_bytes=_binding_memory(configuration.network),
        eviction_strategy=configuration.eviction_strategy or "",
    )


def _vcpus(cpu: wire.DomainCPU) -> int:
    product = 0
    for factor in (cpu.cores, cpu.sockets, cpu.threads):
        product = (product or 1) * factor if factor else product
    return product


def _device_overhead_bytes(
    spec: wire.VirtualMachineInstanceSpec, domain: wire.Domain, memory: wire.DomainMemory
) -> int:
    devices = domain.devices or wire.Devices()
    security = domain.launch_security or wire.LaunchSecurity()
    interfaces = devices.interfaces or ()
    has_vfio = devices.gpus or devices.host_devices or any(i.sriov for i in interfaces)
    probes = [p for p in (spec.liveness_probe, spec.readiness_probe) if p and p.exec]
    total = 0
    if devices.autoattach_graphics_device is not False:
        total += 32 * _MIB
    if spec.architecture == "arm64":
        total += 128 * _MIB
    if has_vfio:
        total += 1024 * _MIB
    if any(volume.downward_metrics for volume in spec.volumes or ()):
        total += _MIB
    if probes:
        total += (100 + 10 * len(probes)) * _MIB
    if any(interface.passt_binding for interface in interfaces):
        total += 250 * _MIB
    if security.sev or security.snp:
        total += 256 * _MIB
    if devices.tpm and devices.tpm.enabled is not False:
        total += 53 * _MIB
    if memory.reserved_overhead and memory.reserved_overhead.added_overhead is not None:
        field = "spec.domain.memory.reservedOverhead.addedOverhead"
        total += amount(memory.reserved_overhead.added_overhead, field)
    return total


def _bindings(devices: wire.Devices) -> tuple[str, ...]:
    interfaces = devices.interfaces or ()
    named = [i.binding.name for i in interfaces if i.binding and i.binding.name]
    return tuple(dict.fromkeys(named))


def _networks(
    metadata: wire.Metadata, spec: wire.VirtualMachineInstanceSpec
) -> Iterator[ObjectKey]:
    """A name without a namespace is one in the VMI's."""
    for network in spec.networks or ():
        if network.multus:
            namespace, slash, name = network.multus.network_name.partition("/")
            yield (
                ObjectKey(namespace, name)
                if slash
                else ObjectKey(metadata.namespace or "", namespace)
            )


def _hotplugged_claims(
    spec: wire.VirtualMachineInstanceSpec, status: wire.VirtualMachineInstanceStatus
) -> Iterator[str]:
    """Of volumes that are marked so, in the spec or by what KubeVirt has done with them."""
    plugged_in = {each.name for each in status.volume_status or () if each.hotplug_volume}
    for volume in spec.volumes or ():
        claim = volume.persistent_volume_claim or volume.memory_dump
        name = volume.data_volume.name if volume.data_volume else claim and claim.claim_name
        is_marked = any(each and each.hotpluggable for each in (volume.data_volume, claim))
        if name and (is_marked or volume.name in plugged_in):
            yield name


def _machine_type(machine: wire.Machine | None) -> str:
    return (machine and machine.type) or ""


def _hyperv_labels(features: wire.Features | None) -> Iterator[str]:
    """As isFeatureStateEnabled does: virt-api has written `enabled` into those that lack it."""
    hyperv = features and features.hyperv
    if not hyperv:
        return
    for name in (
        "vpindex",
        "runtime",
        "reset",
        "synic",
        "synictimer",
        "frequencies",
        "reenlightenment",
        "tlbflush",
        "ipi",
    ):
        feature: wire.Enabled | None = getattr(hyperv, name)
        if feature and feature.enabled:
            yield f"hyperv.node.kubevirt.io/{name}"
    if hyperv.evmcs and hyperv.evmcs.enabled is not False:
        yield "cpu-vendor.node.kubevirt.io/Intel"


def _rejected_labels(cpu: wire.DomainCPU) -> Iterator[str]:
    if cpu.model in {None, "", "host-model"}:
        yield "node-labeller.kubevirt.io/obsolete-host-model"
    for feature in cpu.features or ():
        if feature.policy == "forbid":
            yield f"{CPU_FEATURE}{feature.name}"


def _ratio(text: str | None) -> float:
    try:
        return float(text) if text else 1.0
    except ValueError as error:
        field = "spec.configuration.additionalGuestMemoryOverheadRatio"
        raise FieldError(field, f"{text!r} is no number") from error


def _support_container(
    kind: str, supports: Iterable[wire.SupportContainerResources]
) -> tuple[Amounts, Amounts]:
    """Requests and limits that replace the defaults."""
    for support in supports:
        if support.type == kind:
            resources = support.resources or wire.Resources()
            field = "spec.configuration.supportContainerResources"
            return amounts(resources.requests, field), amounts(resources.limits, field)
    return {}, {}


def _binding_memory(network: wire.NetworkConfiguration | None) -> Mapping[str, int]:
    memory = {}
    for name, plugin in ((network and network.binding) or {}).items():
        overhead = plugin.compute_resource_overhead or wire.Resources()
        requests = amounts(overhead.requests, f"{_NETWORK}.{name}.computeResourceOverhead.requests")
        memory[name] = requests.get("memory", 0)
    return memory
