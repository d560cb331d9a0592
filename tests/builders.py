"""Objects of the model with safe defaults, so that a test states only what matters to it.

Amounts are Kubernetes quantities. `cluster(node("w1"), vm("db", on="w1", memory="8Gi"))` is a
snapshot; further keyword arguments are fields of the object under the names of the model.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from rebalancer.model import keys
from rebalancer.model.objects import (
    EMPTY,
    Amounts,
    Condition,
    CSIDriver,
    LauncherConfiguration,
    LimitRange,
    Migration,
    MigrationConfiguration,
    MigrationPolicy,
    MigrationState,
    Namespace,
    NetworkAttachmentDefinition,
    Node,
    ObjectKey,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    ResourceQuota,
    StorageClass,
    VirtualMachineInstance,
)
from rebalancer.model.quantity import parse_amount
from rebalancer.model.snapshot import Snapshot
from rebalancer.scheduling.own_launchers import off_its_launchers

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
CPU_MODEL = "Skylake-Server"

Launched = tuple[VirtualMachineInstance, Pod]
"""A VMI and its launcher pod."""
Thing = (
    Node
    | Pod
    | VirtualMachineInstance
    | Migration
    | PersistentVolumeClaim
    | PersistentVolume
    | StorageClass
    | MigrationPolicy
    | NetworkAttachmentDefinition
    | CSIDriver
    | Namespace
    | ResourceQuota
    | LimitRange
    | PodDisruptionBudget
    | MigrationConfiguration
    | LauncherConfiguration
    | Launched
)

_DEVICES = {f"devices.kubevirt.io/{device}": "1k" for device in ("kvm", "tun", "vhost-net")}
_DEVICE_REQUESTS = dict.fromkeys(_DEVICES, "1")
_LAUNCHER_SELECTOR = {keys.ARCHITECTURE: "amd64", "kubevirt.io/schedulable": "true"}


def amounts(quantities: Mapping[str, str]) -> Amounts:
    return {resource: parse_amount(text, resource) for resource, text in quantities.items()}


def node(
    name: str,
    memory: str = "31000Mi",
    cpu: str = "16",
    *,
    pods: str = "110",
    resources: Mapping[str, str] = EMPTY,
    labels: Mapping[str, str] = EMPTY,
    **fields: Any,
) -> Node:
    """A ready node that runs VMs; `resources` and `labels` add to the usual or replace them."""
    allocatable = {
        "cpu": cpu,
        "memory": memory,
        "pods": pods,
        "ephemeral-storage": "500Gi",
        **_DEVICES,
        **resources,
    }
    usual_labels = {
        keys.HOSTNAME: name,
        keys.ARCHITECTURE: "amd64",
        "kubernetes.io/os": "linux",
        "kubevirt.io/schedulable": "true",
        "machine-type.node.kubevirt.io/q35": "true",
        "cpu-vendor.node.kubevirt.io/Intel": "true",
        f"host-model-cpu.node.kubevirt.io/{CPU_MODEL}": "true",
        f"cpu-model.node.kubevirt.io/{CPU_MODEL}": "true",
        f"cpu-model-migration.node.kubevirt.io/{CPU_MODEL}": "true",
    }
    return Node(
        name=name,
        allocatable=amounts(allocatable),
        labels={**usual_labels, **labels},
        **{"uid": f"node-{name}", **fields},
    )


def pod(
    name: str,
    *,
    on: str | None = None,
    memory: str = "100Mi",
    cpu: str = "10m",
    resources: Mapping[str, str] = EMPTY,
    **fields: Any,
) -> Pod:
    """A pod that is no VM's; running on its node, or pending when it has none."""
    requests = amounts({"cpu": cpu, "memory": memory, "pods": "1", **resources})
    defaults: dict[str, Any] = {
        "namespace": "default",
        "uid": f"pod-{name}",
        "phase": "Running" if on else "Pending",
        "created_at": NOW - timedelta(days=1),
    }
    return Pod(name=name, requests=requests, node_name=on, **{**defaults, **fields})


def vm(
    name: str,
    *,
    on: str | None,
    memory: str = "8476Mi",
    cpu: str = "100m",
    resources: Mapping[str, str] = EMPTY,
    namespace: str = "default",
    node_selector: Mapping[str, str] = EMPTY,
    labels: Mapping[str, str] = EMPTY,
    vmi: Mapping[str, Any] = EMPTY,
    **pod_fields: Any,
) -> Launched:
    """A running, live-migratable VM: its VMI and its launcher pod, which requests just `memory`.

    `node_selector` is the VMI's and so the pod's as well; `vmi` holds other fields of the VMI.
    """
    defaults: dict[str, Any] = {
        "uid": f"vmi-{name}",
        "phase": "Running",
        "node_name": on,
        "guest_memory_bytes": parse_amount(memory, "memory"),
        "architecture": "amd64",
        "live_migratable": Condition("True"),
    }
    instance = VirtualMachineInstance(
        namespace=namespace,
        name=name,
        node_selector=node_selector,
        **{**defaults, **vmi},
    )
    launcher_labels = {
        "kubevirt.io": "virt-launcher",
        keys.CREATED_BY: instance.uid,
        "vm.kubevirt.io/name": name,
    }
    launcher_fields: dict[str, Any] = {
        "vmi_uid": instance.uid,
        "labels": {**launcher_labels, **labels},
        "node_selector": {**_LAUNCHER_SELECTOR, **node_selector},
    }
    launcher = pod(
        f"virt-launcher-{name}",
        on=on,
        memory=memory,
        cpu=cpu,
        resources={**_DEVICE_REQUESTS, **resources},
        **{"namespace": namespace, "uid": f"pod-{name}", **launcher_fields, **pod_fields},
    )
    return instance, launcher


def pending_vm(
    name: str, memory: str, *, vmi: Mapping[str, Any] = EMPTY, **vm_fields: Any
) -> Launched:
    """A VM that the scheduler has found no node for since an hour; arguments as in `vm`."""
    pod_defaults: dict[str, Any] = {
        "created_at": NOW - timedelta(hours=1),
        "unschedulable_since": NOW - timedelta(hours=1),
        "unschedulable_message": "0/1 nodes are available: 1 Insufficient memory.",
    }
    vmi_defaults: dict[str, Any] = {"phase": "Scheduling", "live_migratable": None}
    fields = {**pod_defaults, **vm_fields}
    return vm(name, on=None, memory=memory, vmi={**vmi_defaults, **vmi}, **fields)


def migration(
    name: str, vmi_name: str, phase: str = "Running", *, namespace: str = "default", **fields: Any
) -> Migration:
    """A migration that was created a minute ago."""
    defaults: dict[str, Any] = {
        "uid": f"migration-{name}",
        "created_at": NOW - timedelta(minutes=1),
    }
    return Migration(
        namespace=namespace, name=name, vmi_name=vmi_name, phase=phase, **{**defaults, **fields}
    )


def migrating(
    launched: Launched, *, to: str, migration_name: str = "", phase: str = "Running"
) -> tuple[VirtualMachineInstance, Pod, Pod, Migration]:
    """A VM in the middle of a migration: VMI, source pod, target pod and migration."""
    vmi, source_pod = launched
    under_way = migration(
        migration_name or f"move-{vmi.name}", vmi.name, phase, namespace=vmi.namespace
    )
    target_pod = replace(
        source_pod,
        name=f"{source_pod.name}-target",
        uid=f"{source_pod.uid}-target",
        node_name=to,
        migration_uid=under_way.uid,
        labels={**source_pod.labels, keys.MIGRATION_JOB_UID: under_way.uid},
    )
    state = MigrationState(migration_uid=under_way.uid)
    return replace(vmi, migration_state=state), source_pod, target_pod, under_way


def evacuated(
    launched: Launched, **target_fields: Any
) -> tuple[VirtualMachineInstance, Pod, Pod, Migration]:
    """A VM that KubeVirt cannot evacuate, since its target pod has found no node for a minute."""
    vmi, source_pod = launched
    evacuation = migration(f"kubevirt-evacuation-{vmi.name}", vmi.name, "Scheduling")
    defaults: dict[str, Any] = {
        "name": f"{source_pod.name}-target",
        "uid": f"{source_pod.uid}-target",
        "phase": "Pending",
        "node_name": None,
        "created_at": evacuation.created_at,
        "unschedulable_since": evacuation.created_at,
        "pod_anti_affinity": (off_its_launchers(vmi),),
        "migration_uid": evacuation.uid,
    }
    target_pod = replace(source_pod, **{**defaults, **target_fields})
    marked = replace(vmi, evacuation_node_name=vmi.node_name or "")
    return marked, source_pod, target_pod, evacuation


def cluster(
    *things: Thing | Iterable[Thing], taken_at: datetime = NOW, missing: tuple[str, ...] = ()
) -> Snapshot:
    """A snapshot of these objects, in their order; namespaces that are not given are added."""
    objects = tuple(_flattened(things))
    pods = _only(Pod, objects)
    vmis = _only(VirtualMachineInstance, objects)
    given = _only(Namespace, objects)
    named = {each.name for each in given}
    mentioned = dict.fromkeys(each.namespace for each in (*pods, *vmis))
    added = (
        Namespace(name, {"kubernetes.io/metadata.name": name})
        for name in mentioned
        if name not in named
    )
    configurations = _only(MigrationConfiguration, objects)
    launchers = _only(LauncherConfiguration, objects)
    return Snapshot(
        taken_at=taken_at,
        nodes=_only(Node, objects),
        pods=pods,
        vmis=vmis,
        migrations=_only(Migration, objects),
        claims=_only(PersistentVolumeClaim, objects),
        volumes=_only(PersistentVolume, objects),
        storage_classes=_only(StorageClass, objects),
        csi_drivers=_only(CSIDriver, objects),
        namespaces=(*given, *added),
        quotas=_only(ResourceQuota, objects),
        limit_ranges=_only(LimitRange, objects),
        disruption_budgets=_only(PodDisruptionBudget, objects),
        migration_policies=_only(MigrationPolicy, objects),
        network_attachments=_only(NetworkAttachmentDefinition, objects),
        migration_configuration=configurations[0] if configurations else MigrationConfiguration(),
        launcher_configuration=launchers[0] if launchers else LauncherConfiguration(),
        missing=missing,
    )


def key(name: str, namespace: str = "default") -> ObjectKey:
    return ObjectKey(namespace, name)


def _flattened(things: Iterable[Any]) -> Iterable[Any]:
    for thing in things:
        if isinstance(thing, Iterable):
            yield from _flattened(thing)
        else:
            yield thing


def _only(kind: type[Any], objects: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(each for each in objects if isinstance(each, kind))
