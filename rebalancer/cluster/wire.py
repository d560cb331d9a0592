"""Kubernetes and KubeVirt objects as JSON has them: only the fields that are read here.

Every field may be absent or null, which Kubernetes takes for the same. What many pods have in
common, such as node selectors of 80 CPU features, stays `Raw` so that it is decoded once only.
"""

from datetime import datetime
from typing import Annotated, Generic, TypeVar

from msgspec import Meta, Raw, Struct, field

from rebalancer.model.objects import Operator

NULL = Raw(b"null")
Quantity = str | int | float
Quantities = dict[str, Quantity]
Time = Annotated[datetime, Meta(tz=True)]


class Wire(Struct, rename="camel", gc=False):
    """What all have in common; none ever refers to itself, so the cyclic collector can pass."""


class Ignored(Wire):
    """An object of which only the presence counts."""


class OwnerReference(Wire):
    kind: str | None = None
    uid: str | None = None
    controller: bool | None = None


class Metadata(Wire):
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None


class Condition(Wire):
    type: str | None = None
    status: str | None = None
    reason: str | None = None
    message: str | None = None
    last_transition_time: Time | None = None


class Object(Wire):
    metadata: Metadata | None = None


# Selectors and affinity


class Requirement(Wire):
    key: str
    operator: Operator
    values: list[str] | None = None


class LabelSelector(Wire):
    match_labels: dict[str, str] | None = None
    match_expressions: list[Requirement] | None = None


class NodeSelectorTerm(Wire):
    match_expressions: list[Requirement] | None = None
    match_fields: list[Requirement] | None = None


class NodeSelector(Wire):
    node_selector_terms: list[NodeSelectorTerm] | None = None


class NodeAffinity(Wire):
    required: NodeSelector | None = field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(Wire):
    topology_key: str
    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class PodAffinity(Wire):
    required: list[PodAffinityTerm] | None = field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Wire):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(Wire):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class TopologySpreadConstraint(Wire):
    topology_key: str
    when_unsatisfiable: str
    max_skew: int
    min_domains: int | None = None
    label_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None


# Node


class Taint(Wire):
    key: str
    effect: str
    value: str | None = None


class NodeSpec(Wire):
    unschedulable: bool | None = None
    taints: list[Taint] | None = None


class NodeAddress(Wire):
    type: str
    address: str


class NodeStatus(Wire):
    allocatable: Quantities | None = None
    addresses: list[NodeAddress] | None = None
    conditions: list[Condition] | None = None


class Node(Object):
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


# Pod


class Resources(Wire):
    requests: Quantities | None = None
    limits: Quantities | None = None


class ContainerPort(Wire):
    host_port: int | None = None
    host_ip: str | None = field(default=None, name="hostIP")
    protocol: str | None = None


class RestartRule(Wire):
    action: str | None = None


class Container(Wire):
    name: str | None = None
    resources: Raw = NULL
    restart_policy: str | None = None
    ports: list[ContainerPort] | None = None
    restart_policy_rules: list[RestartRule] | None = None


class ContainerStatus(Wire):
    name: str | None = None
    resources: Raw = NULL
    allocated_resources: Raw = NULL


class ClaimVolume(Wire):
    claim_name: str


class Volume(Wire):
    """A pod's volume; of a kind that is not listed here when no field but the name is set."""

    name: str | None = None
    persistent_volume_claim: ClaimVolume | None = None
    config_map: Ignored | None = None
    downward_api: Ignored | None = field(default=None, name="downwardAPI")
    empty_dir: Ignored | None = None
    host_path: Ignored | None = None
    image: Ignored | None = None
    projected: Ignored | None = None
    secret: Ignored | None = None
    csi: Ignored | None = None
    ephemeral: Ignored | None = None


class PodSpec(Wire):
    node_name: str | None = None
    node_selector: Raw = NULL
    affinity: Raw = NULL
    tolerations: Raw = NULL
    topology_spread_constraints: Raw = NULL
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    overhead: Raw = NULL
    resources: Raw = NULL
    volumes: list[Volume] | None = None
    resource_claims: list[Ignored] | None = None
    host_network: bool | None = None
    host_users: bool | None = None
    scheduling_gates: list[Ignored] | None = None
    scheduling_group: Ignored | None = None
    scheduler_name: str | None = None
    priority: int | None = None
    priority_class_name: str | None = None
    preemption_policy: str | None = None


class PodStatus(Wire):
    phase: str | None = None
    nominated_node_name: str | None = None
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    resources: Raw = NULL
    allocated_resources: Raw = NULL


class Pod(Object):
    spec: PodSpec | None = None
    status: PodStatus | None = None


# KubeVirt


class HugePages(Wire):
    page_size: str | None = None


class ReservedOverhead(Wire):
    added_overhead: Quantity | None = None


class DomainMemory(Wire):
    guest: Quantity | None = None
    hugepages: HugePages | None = None
    reserved_overhead: ReservedOverhead | None = None


class CPUFeature(Wire):
    name: str | None = None
    policy: str | None = None


class DomainCPU(Wire):
    model: str | None = None
    cores: int | None = None
    sockets: int | None = None
    threads: int | None = None
    features: list[CPUFeature] | None = None
    dedicated_cpu_placement: bool | None = None
    isolate_emulator_thread: bool | None = None


class DomainResources(Resources):
    overcommit_guest_overhead: bool | None = None


class Binding(Wire):
    name: str | None = None


class Interface(Wire):
    sriov: Ignored | None = None
    passt_binding: Ignored | None = None
    binding: Binding | None = None


class MultusNetwork(Wire):
    network_name: str


class Network(Wire):
    multus: MultusNetwork | None = None


class Enabled(Wire):
    enabled: bool | None = None


class Devices(Wire):
    interfaces: list[Interface] | None = None
    gpus: list[Ignored] | None = None
    host_devices: list[Ignored] | None = None
    tpm: Enabled | None = None
    autoattach_graphics_device: bool | None = None
    autoattach_serial_console: bool | None = None
    log_serial_console: bool | None = None


class HyperV(Wire):
    vpindex: Enabled | None = None
    runtime: Enabled | None = None
    reset: Enabled | None = None
    synic: Enabled | None = None
    synictimer: Enabled | None = None
    frequencies: Enabled | None = None
    reenlightenment: Enabled | None = None
    tlbflush: Enabled | None = None
    ipi: Enabled | None = None
    evmcs: Enabled | None = None


class Features(Wire):
    hyperv: HyperV | None = None


class IOThreads(Wire):
    supplemental_pool_thread_count: int | None = None


class LaunchSecurity(Wire):
    sev: Ignored | None = None
    snp: Ignored | None = None


class Machine(Wire):
    type: str | None = None


class Domain(Wire):
    memory: DomainMemory | None = None
    cpu: DomainCPU | None = None
    resources: DomainResources | None = None
    devices: Devices | None = None
    features: Features | None = None
    io_threads: IOThreads | None = None
    launch_security: LaunchSecurity | None = None
    machine: Machine | None = None


class DataVolumeSource(Wire):
    name: str
    hotpluggable: bool | None = None


class ClaimVolumeSource(Wire):
    claim_name: str
    hotpluggable: bool | None = None


class VMIVolume(Wire):
    name: str | None = None
    data_volume: DataVolumeSource | None = None
    persistent_volume_claim: ClaimVolumeSource | None = None
    memory_dump: ClaimVolumeSource | None = None
    downward_metrics: Ignored | None = None


class UtilityVolume(Wire):
    name: str | None = None


class Probe(Wire):
    exec: Ignored | None = None


class VirtualMachineInstanceSpec(Wire):
    domain: Domain | None = None
    architecture: str | None = None
    node_selector: dict[str, str] | None = None
    affinity: Raw = NULL
    tolerations: Raw = NULL
    eviction_strategy: str | None = None
    networks: list[Network] | None = None
    volumes: list[VMIVolume] | None = None
    utility_volumes: list[UtilityVolume] | None = None
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None


class MemoryStatus(Wire):
    guest_current: Quantity | None = None


class MigrationConfiguration(Wire):
    parallel_migrations_per_cluster: int | None = None
    parallel_outbound_migrations_per_node: int | None = None
    completion_timeout_per_gib: int | None = field(default=None, name="completionTimeoutPerGiB")
    progress_timeout: int | None = None
    bandwidth_per_migration: Quantity | None = None
    node_drain_taint_key: str | None = None


class MigrationPolicySelectors(Wire):
    namespace_selector: dict[str, str] | None = None
    virtual_machine_instance_selector: dict[str, str] | None = None


class MigrationPolicySpec(Wire):
    selectors: MigrationPolicySelectors | None = None
    bandwidth_per_migration: Quantity | None = None
    completion_timeout_per_gib: int | None = field(default=None, name="completionTimeoutPerGiB")


class MigrationPolicy(Object):
    spec: MigrationPolicySpec | None = None


class MigrationState(Wire):
    migration_uid: str | None = None
    completed: bool | None = None
    failed: bool | None = None
    failure_reason: str | None = None
    source_node: str | None = None
    migration_configuration: MigrationConfiguration | None = None


class VolumeStatus(Wire):
    name: str | None = None
    hotplug_volume: Ignored | None = None


class BackupStatus(Wire):
    backup_name: str | None = None
    completed: bool | None = None


class ChangedBlockTracking(Wire):
    backup_status: BackupStatus | None = None


class VirtualMachineInstanceStatus(Wire):
    phase: str | None = None
    node_name: str | None = None
    conditions: list[Condition] | None = None
    memory: MemoryStatus | None = None
    migration_state: MigrationState | None = None
    evacuation_node_name: str | None = None
    machine: Machine | None = None
    volume_status: list[VolumeStatus] | None = None
    changed_block_tracking: ChangedBlockTracking | None = None


class VirtualMachineInstance(Object):
    spec: VirtualMachineInstanceSpec | None = None
    status: VirtualMachineInstanceStatus | None = None


class MigrationSpec(Wire):
    vmi_name: str | None = None


class PhaseTransition(Wire):
    phase: str | None = None
    phase_transition_timestamp: Time | None = None


class MigrationStatus(Wire):
    phase: str | None = None
    phase_transition_timestamps: list[PhaseTransition] | None = None
    migration_state: MigrationState | None = None


class Migration(Object):
    spec: MigrationSpec | None = None
    status: MigrationStatus | None = None


class DeveloperConfiguration(Wire):
    memory_overcommit: int | None = None
    cpu_allocation_ratio: int | None = None
    node_selectors: dict[str, str] | None = None
    feature_gates: list[str] | None = None


class BindingPlugin(Wire):
    compute_resource_overhead: Resources | None = None


class NetworkConfiguration(Wire):
    binding: dict[str, BindingPlugin] | None = None


class SupportContainerResources(Wire):
    type: str | None = None
    resources: Resources | None = None


class VirtualMachineOptions(Wire):
    disable_serial_console_log: Ignored | None = None


class KubeVirtConfiguration(Wire):
    migrations: MigrationConfiguration | None = None
    developer_configuration: DeveloperConfiguration | None = None
    network: NetworkConfiguration | None = None
    support_container_resources: list[SupportContainerResources] | None = None
    virtual_machine_options: VirtualMachineOptions | None = None
    eviction_strategy: str | None = None
    additional_guest_memory_overhead_ratio: str | None = None


class KubeVirtSpec(Wire):
    configuration: KubeVirtConfiguration | None = None


class KubeVirt(Object):
    spec: KubeVirtSpec | None = None


# Storage and what namespaces hold


class ClaimSpec(Wire):
    volume_name: str | None = None
    storage_class_name: str | None = None
    access_modes: list[str] | None = None


class ClaimStatus(Wire):
    phase: str | None = None


class PersistentVolumeClaim(Object):
    spec: ClaimSpec | None = None
    status: ClaimStatus | None = None


class VolumeNodeAffinity(Wire):
    required: NodeSelector | None = None


class CSISource(Wire):
    driver: str
    volume_handle: str


class VolumeSpec(Wire):
    node_affinity: VolumeNodeAffinity | None = None
    csi: CSISource | None = None
    aws_elastic_block_store: Ignored | None = None
    azure_disk: Ignored | None = None
    azure_file: Ignored | None = None
    cinder: Ignored | None = None
    gce_persistent_disk: Ignored | None = None
    portworx_volume: Ignored | None = None
    vsphere_volume: Ignored | None = None


class PersistentVolume(Object):
    spec: VolumeSpec | None = None


class TopologySelectorExpression(Wire):
    key: str
    values: list[str]


class TopologySelectorTerm(Wire):
    match_label_expressions: list[TopologySelectorExpression] | None = None


class StorageClass(Object):
    provisioner: str | None = None
    volume_binding_mode: str | None = None
    allowed_topologies: list[TopologySelectorTerm] | None = None


class CSIDriverSpec(Wire):
    storage_capacity: bool | None = None


class CSIDriver(Object):
    spec: CSIDriverSpec | None = None


class Allocatable(Wire):
    count: int | None = None


class CSIDriverOnNode(Wire):
    name: str
    allocatable: Allocatable | None = None


class CSINodeSpec(Wire):
    drivers: list[CSIDriverOnNode] | None = None


class CSINode(Object):
    spec: CSINodeSpec | None = None


class AttachedVolume(Wire):
    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Wire):
    attacher: str
    node_name: str
    source: AttachedVolume | None = None


class VolumeAttachment(Object):
    spec: VolumeAttachmentSpec | None = None


class Namespace(Object):
    pass


class NetworkAttachmentDefinition(Object):
    pass


class ScopeRequirement(Wire):
    scope_name: str
    operator: Operator
    values: list[str] | None = None


class ScopeSelector(Wire):
    match_expressions: list[ScopeRequirement] | None = None


class QuotaSpec(Wire):
    hard: Quantities | None = None
    scopes: list[str] | None = None
    scope_selector: ScopeSelector | None = None


class QuotaStatus(Wire):
    used: Quantities | None = None


class ResourceQuota(Object):
    spec: QuotaSpec | None = None
    status: QuotaStatus | None = None


class LimitRangeItem(Wire):
    type: str | None = None
    max: Quantities | None = None
    default: Quantities | None = None


class LimitRangeSpec(Wire):
    limits: list[LimitRangeItem] | None = None


class LimitRange(Object):
    spec: LimitRangeSpec | None = None


class DisruptionBudgetSpec(Wire):
    selector: LabelSelector | None = None


class DisruptionBudgetStatus(Wire):
    disruptions_allowed: int | None = None


class PodDisruptionBudget(Object):
    spec: DisruptionBudgetSpec | None = None
    status: DisruptionBudgetStatus | None = None


# Lists and documents

T = TypeVar("T")


class ListMetadata(Wire):
    resource_version: str | None = None
    continue_token: str | None = field(default=None, name="continue")


class Page(Wire, Generic[T]):
    """An answer of the API server to a list request: one page of it."""

    metadata: ListMetadata | None = None
    items: list[T] | None = None


class TypeMeta(Wire):
    """What tells the kind of an object; `items` if it is a list."""

    api_version: str | None = None
    kind: str | None = None
    items: Raw = NULL


class TimedCondition(Wire):
    last_heartbeat_time: Time | None = None
    last_transition_time: Time | None = None


class TimedMetadata(Wire):
    creation_timestamp: Time | None = None


class TimedStatus(Wire):
    conditions: list[TimedCondition] | None = None
    phase_transition_timestamps: list[PhaseTransition] | None = None


class Times(Wire):
    """When something happened to an object, whatever its kind."""

    metadata: TimedMetadata | None = None
    status: TimedStatus | None = None
