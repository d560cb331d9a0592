"""The cluster's objects as the rebalancer needs them: frozen, with amounts in plain integers.

Amounts: cpu in millicores, memory and storage in bytes, everything else in pieces.

What a cluster has by the ten thousand is kept from the cyclic collector (`gc=False`): it never
refers to itself.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

Amounts = Mapping[str, int]
"""Resource name to amount."""

EMPTY: Mapping[str, str] = {}

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]


class ObjectKey(NamedTuple):
    """Namespace and name; how VMIs and pods are told apart everywhere."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Taint(Struct, frozen=True, gc=False):
    key: str
    effect: str
    value: str = ""


class Toleration(Struct, frozen=True, gc=False):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class Requirement(Struct, frozen=True, gc=False):
    """One expression of a node selector or a label selector."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Struct, frozen=True, gc=False):
    """Expressions that must all hold; a term without any matches no node."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


class LabelSelector(Struct, frozen=True, gc=False):
    """Matches objects by label; one without requirements matches all of them."""

    requirements: tuple[Requirement, ...] = ()


class PodAffinityTerm(Struct, frozen=True, gc=False):
    """A required term of pod affinity or anti-affinity, `matchLabelKeys` already merged in."""

    topology_key: str
    selector: LabelSelector | None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None


class TopologySpreadConstraint(Struct, frozen=True, gc=False):
    """One that bars nodes (`whenUnsatisfiable: DoNotSchedule`), `matchLabelKeys` merged in."""

    topology_key: str
    max_skew: int
    selector: LabelSelector | None
    min_domains: int = 1
    honors_node_affinity: bool = True
    """Whether pods only count on nodes that the pod's own node selector and affinity allow."""
    honors_node_taints: bool = False
    """Whether pods only count on nodes whose taints the pod tolerates."""


class HostPort(Struct, frozen=True, gc=False):
    """A port of the node that a container takes."""

    port: int
    protocol: str = "TCP"
    ip: str = "0.0.0.0"

    def conflicts_with(self, other: "HostPort") -> bool:
        return (self.port, self.protocol) == (other.port, other.protocol) and (
            self.ip == other.ip or "0.0.0.0" in {self.ip, other.ip}
        )


class Node(Struct, frozen=True, gc=False):
    name: str
    allocatable: Amounts
    labels: Mapping[str, str] = EMPTY
    taints: tuple[Taint, ...] = ()
    is_unschedulable: bool = False
    is_ready: bool = True
    uid: str = ""
    drain_sign: str = ""
    """The label or annotation of ours that asks for it to be emptied, in words; else empty."""
    internal_addresses: tuple[str, ...] = ()
    """IP addresses within the cluster's network."""


class Pod(Struct, frozen=True, gc=False):
    """A pod with what the scheduler looks at.

    `requests` is what the scheduler counts: the larger of the init containers' peak and the sum
    of containers and sidecars, plus overhead; the pod's own slot (`pods`: 1) included.
    """

    namespace: str
    name: str
    uid: str
    requests: Amounts
    phase: str = "Running"
    node_name: str | None = None
    labels: Mapping[str, str] = EMPTY
    annotations: Mapping[str, str] = EMPTY
    """Of a launcher pod: those under `descheduler.alpha.kubernetes.io/` and `rebalancer/`."""
    created_at: datetime | None = None
    is_terminating: bool = False
    nominated_node_name: str | None = None

    vmi_uid: str | None = None
    """Of a launcher pod: the VMI that owns it."""
    migration_uid: str | None = None
    """Of a migration's target pod: the migration."""

    node_selector: Mapping[str, str] = EMPTY
    node_affinity: tuple[NodeSelectorTerm, ...] | None = None
    """Required terms, of which one must match; None without such a requirement."""
    tolerations: tuple[Toleration, ...] = ()
    pod_affinity: tuple[PodAffinityTerm, ...] = ()
    pod_anti_affinity: tuple[PodAffinityTerm, ...] = ()
    topology_spread: tuple[TopologySpreadConstraint, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    claim_names: tuple[str, ...] = ()
    launcher_containers: Mapping[str, Amounts] = {}
    """Of a launcher pod: each container's requests; init containers only if they keep running."""
    limits: Amounts = {}
    """Of a launcher pod: sum of its containers' limits."""
    attached_to: str | None = None
    """Of a pod that brings hot-plugged volumes to a VM: uid of the launcher pod that owns it."""
    unmodelled: tuple[str, ...] = ()
    """What the pod asks of the scheduler that no filter here decides, such as a resource claim."""

    priority: int = 0
    priority_class_name: str = ""
    can_preempt: bool = True
    scheduler_name: str = "default-scheduler"
    unschedulable_since: datetime | None = None
    """Set when PodScheduled is False with reason Unschedulable: since when."""
    unschedulable_message: str = ""
    is_gated: bool = False

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.namespace, self.name)

    @property
    def is_finished(self) -> bool:
        """Whether its containers have ended for good, so that it holds no room any more."""
        return self.phase in {"Succeeded", "Failed"}

    def bound_to(self, node_name: str) -> "Pod":
        """The pod as it is on that node."""
        return replace(self, node_name=node_name, phase="Running", unschedulable_since=None)


class Condition(Struct, frozen=True, gc=False):
    status: str
    reason: str = ""
    message: str = ""


class MigrationState(Struct, frozen=True, gc=False):
    """`status.migrationState` of a VMI: its latest migration."""

    migration_uid: str = ""
    is_completed: bool = False
    is_failed: bool = False
    completion_timeout_seconds_per_gib: int | None = None
    """What holds for this migration, where KubeVirt has noted it: a MigrationPolicy may differ
    from the KubeVirt CR."""
    progress_timeout_seconds: int | None = None


class LauncherSpec(Struct, frozen=True, gc=False):
    """What virt-controller renders a VMI's launcher pods from, apart from its own settings."""

    requests: Amounts = {}
    """`spec.domain.resources.requests`, and so `limits`."""
    limits: Amounts = {}
    guest_memory_bytes: int | None = None
    """`spec.domain.memory.guest`; memory that is still to be plugged in included."""
    huge_page_size: str = ""
    overcommits_overhead: bool = False
    vcpus: int | None = None
    """Cores times sockets times threads; None where the VMI has no CPU topology."""
    io_threads: int = 0
    """Threads of the supplemental pool."""
    has_dedicated_cpus: bool = False
    isolates_emulator_thread: bool = False
    completes_even_parity: bool = False
    device_overhead_bytes: int = 0
    """Memory that devices, probes and the like need besides the guest's."""
    bindings: tuple[str, ...] = ()
    """Network binding plugins, each once."""
    networks: tuple[ObjectKey, ...] = ()
    """NetworkAttachmentDefinitions of its secondary networks, one for each of these."""
    hotplugged_claims: tuple[str, ...] = ()
    """Of volumes that come to the VM in a pod of their own, after its launcher pod."""
    logs_serial_console: bool | None = None
    """None where KubeVirt's own settings decide."""
    machine_type: str = ""
    hyperv_labels: tuple[str, ...] = ()
    """Of nodes; asked for where KubeVirt checks Hyper-V features strictly."""
    rejected_labels: tuple[str, ...] = ()
    """A node that has one of them, whatever its value, is no target."""
    node_affinity: tuple[NodeSelectorTerm, ...] | None = None
    pod_affinity: tuple[PodAffinityTerm, ...] = ()
    pod_anti_affinity: tuple[PodAffinityTerm, ...] = ()
    tolerations: tuple[Toleration, ...] = ()


class VirtualMachineInstance(Struct, frozen=True, gc=False):
    namespace: str
    name: str
    uid: str
    phase: str = "Running"
    node_name: str | None = None
    labels: Mapping[str, str] = EMPTY
    annotations: Mapping[str, str] = EMPTY
    guest_memory_bytes: int | None = None
    """What a migration copies; None where the VMI names no guest memory."""
    architecture: str = ""
    has_host_model_cpu: bool = True
    """`spec.domain.cpu.model` is `host-model` (KubeVirt's default), so a target must match."""
    node_selector: Mapping[str, str] = EMPTY
    launcher: LauncherSpec | None = None
    """None where that is not known: then a target pod is taken to be like the source pod."""
    live_migratable: Condition | None = None
    pending_changes: tuple[str, ...] = ()
    """Condition types that stand for a change for which KubeVirt migrates the VM by itself."""
    is_paused: bool = False
    utility_volumes: tuple[str, ...] = ()
    """Volumes that a migration waits for to be detached."""
    running_backup: str = ""
    """Name of the backup that a migration waits for."""
    migration_state: MigrationState | None = None
    eviction_strategy: str = ""
    evacuation_node_name: str = ""
    is_terminating: bool = False

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.namespace, self.name)


class Migration(Struct, frozen=True, gc=False):
    """A VirtualMachineInstanceMigration, whoever made it."""

    namespace: str
    name: str
    uid: str
    vmi_name: str
    phase: str = ""
    labels: Mapping[str, str] = EMPTY
    annotations: Mapping[str, str] = EMPTY
    created_at: datetime | None = None
    phase_times: tuple[tuple[str, datetime], ...] = ()
    """When each phase was entered, in order; the last one ends it where it is final."""
    failure_reason: str = ""
    source_node_name: str = ""
    """Where the VM was; empty where KubeVirt has not noted it."""

    @property
    def vmi_key(self) -> ObjectKey:
        return ObjectKey(self.namespace, self.vmi_name)

    @property
    def is_finished(self) -> bool:
        return self.phase in {"Succeeded", "Failed"}

    @property
    def ended_at(self) -> datetime | None:
        """When it finished; its creation where KubeVirt did not note the time."""
        if not self.is_finished:
            return None
        return self.phase_times[-1][1] if self.phase_times else self.created_at


class PersistentVolumeClaim(Struct, frozen=True, gc=False):
    namespace: str
    name: str
    volume_name: str = ""
    """Empty while it has none."""
    is_bound: bool = True
    """Whether that volume is bound to it for good; otherwise it is only meant for it."""
    storage_class: str = ""
    selected_node: str = ""
    """Where its volume is being made."""
    is_read_write_once_pod: bool = False
    """Whether one pod in the whole cluster may use it."""
    is_terminating: bool = False
    is_lost: bool = False
    """Whether its volume has vanished."""


class CsiVolume(NamedTuple):
    """What tells a volume of a CSI driver from all others."""

    driver: str
    handle: str


class PersistentVolume(Struct, frozen=True, gc=False):
    name: str
    node_affinity: tuple[NodeSelectorTerm, ...] | None = None
    zones: tuple[Requirement, ...] = ()
    """What its zone and region labels ask of a node's."""
    csi: CsiVolume | None = None
    legacy_source: str = ""
    """The in-tree volume plugin, such as `cinder`, that a CSI driver stands in for today."""


class StorageClass(Struct, frozen=True):
    name: str
    provisioner: str
    waits_for_consumer: bool = False
    """Whether a volume is made only once a pod that uses it has its node."""
    allowed_topologies: tuple[NodeSelectorTerm, ...] | None = None
    """Where volumes can be made; None where that is everywhere."""


class CSIDriver(Struct, frozen=True):
    name: str
    tracks_capacity: bool = False
    """Whether the scheduler asks what its storage has left."""


class CSINode(Struct, frozen=True):
    """What the CSI drivers of a node have said about it."""

    name: str
    volume_limits: Mapping[str, int]
    """Driver to how many of its volumes can be attached, for the drivers that have a limit."""


class VolumeAttachment(Struct, frozen=True):
    """A volume that is attached to a node, or is to be."""

    name: str
    driver: str
    node_name: str
    volume_name: str
    """Of the PersistentVolume; empty for a volume that is none."""


class Namespace(Struct, frozen=True):
    name: str
    labels: Mapping[str, str] = EMPTY


class ScopeRequirement(Struct, frozen=True):
    """A scope of a quota: it only counts pods of which this holds."""

    scope: str
    operator: Operator = "Exists"
    values: tuple[str, ...] = ()


class ResourceQuota(Struct, frozen=True):
    """Keys as in `spec.hard`: `requests.memory`, `limits.cpu`, `count/pods` and so on."""

    namespace: str
    name: str
    hard: Amounts
    used: Amounts = {}
    """Keys that it lacks have not been counted yet."""
    scopes: tuple[ScopeRequirement, ...] = ()


class LimitRangeItem(Struct, frozen=True):
    type: str
    max: Amounts = {}
    default_limit: Amounts = {}


class LimitRange(Struct, frozen=True):
    namespace: str
    name: str
    items: tuple[LimitRangeItem, ...] = ()


class PodDisruptionBudget(Struct, frozen=True):
    namespace: str
    name: str
    selector: LabelSelector | None = None
    """None selects nothing."""
    is_of_kubevirt: bool = False
    """KubeVirt itself made it for one VMI; releases before v1.4 do."""
    disruptions_allowed: int | None = None
    """How many of its pods may be evicted now; None where its status does not say."""


class LauncherConfiguration(Struct, frozen=True):
    """What of the KubeVirt CR bears on launcher pods and on who may move a VM.

    Defaults: pkg/virt-config/configuration.go in kubevirt/kubevirt v1.8.4.
    """

    memory_overcommit_percent: int = 100
    cpu_allocation_ratio: int = 10
    overhead_ratio: float = 1.0
    """`additionalGuestMemoryOverheadRatio`"""
    node_selector: Mapping[str, str] = EMPTY
    """Asked for by every launcher pod."""
    checks_hyperv: bool = False
    """Feature gate HypervStrictCheck."""
    logs_serial_console: bool = True
    console_log_requests: Amounts = field(default_factory=lambda: {"memory": 35_000_000, "cpu": 5})
    console_log_limits: Amounts = field(default_factory=lambda: {"memory": 60_000_000, "cpu": 15})
    attachment_requests: Amounts = field(default_factory=lambda: {"memory": 2_000_000, "cpu": 10})
    """Of a pod that brings hot-plugged volumes; its limits likewise."""
    attachment_limits: Amounts = field(default_factory=lambda: {"memory": 80_000_000, "cpu": 100})
    binding_memory_bytes: Amounts = {}
    """By network binding plugin: memory that each VM with such an interface needs besides."""
    eviction_strategy: str = ""
    """Of VMIs that name none; empty where KubeVirt leaves it open too."""


class NetworkAttachmentDefinition(Struct, frozen=True):
    """A network of Multus, to which pods and VMs can be attached besides that of their cluster."""

    namespace: str
    name: str
    resource_name: str = ""
    """The device that a pod needs for it, such as `intel.com/sriov_netdevice`."""


class MigrationPolicy(Struct, frozen=True):
    """Settings for the migrations of the VMIs that it selects; None where it leaves one alone."""

    name: str
    has_selectors: bool = False
    vmi_labels: Mapping[str, str] = EMPTY
    namespace_labels: Mapping[str, str] = EMPTY
    bandwidth_bytes_per_second: int | None = None
    completion_timeout_seconds_per_gib: int | None = None


class MigrationConfiguration(Struct, frozen=True):
    """`spec.configuration.migrations` of the KubeVirt CR.

    Defaults: pkg/virt-config/virt-config.go in kubevirt/kubevirt v1.8.4. Older releases waited
    800 s per GiB; the CR is read, so the difference only matters where it lacks the field.
    """

    parallel_migrations_per_cluster: int = 5
    parallel_outbound_migrations_per_node: int = 2
    completion_timeout_seconds_per_gib: int = 150
    progress_timeout_seconds: int = 150
    bandwidth_bytes_per_second: int = 0
    """0 stands for no limit."""
    node_drain_taint_key: str = "kubevirt.io/drain"
    """Key of the taint with which a node is emptied by KubeVirt."""
