"""Nodes, VMIs, pods and migrations as dicts for the API, with defaults that just work.

Extra keyword arguments are fields of `spec` under the names of the API:
`vmi("db", priorityClassName="gold", nodeSelector={"zone": "a"})`.
"""

from collections.abc import Mapping, Sequence

from .api import Object
from .virt_handler import NOT_MIGRATABLE_ANNOTATION

CPU_MODEL = "Skylake-Server"

# What virt-handler and its node-labeller put on a node that can run VMs and take them over.
_VIRTUALIZATION_LABELS = {
    "kubevirt.io/schedulable": "true",
    "machine-type.node.kubevirt.io/q35": "true",
    "cpu-vendor.node.kubevirt.io/Intel": "true",
    f"host-model-cpu.node.kubevirt.io/{CPU_MODEL}": "true",
    f"cpu-model.node.kubevirt.io/{CPU_MODEL}": "true",
    f"cpu-model-migration.node.kubevirt.io/{CPU_MODEL}": "true",
}
_DEVICES = {
    "devices.kubevirt.io/kvm": "1k",
    "devices.kubevirt.io/tun": "1k",
    "devices.kubevirt.io/vhost-net": "1k",
}


def node(
    name: str,
    *,
    memory: str = "32Gi",
    cpu: str = "16",
    unschedulable: bool = False,
    taints: Sequence[Mapping[str, str]] = (),
    labels: Mapping[str, str] | None = None,
) -> Object:
    """A node that can run VMs; `memory` and `cpu` are both its capacity and its allocatable."""
    resources = {
        "cpu": cpu,
        "memory": memory,
        "pods": "250",
        "ephemeral-storage": "500Gi",
        **_DEVICES,
    }
    own_labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        **_VIRTUALIZATION_LABELS,
        **(labels or {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": own_labels},
        "spec": {"unschedulable": unschedulable, "taints": [dict(taint) for taint in taints]},
        "status": {"allocatable": resources, "capacity": resources},
    }


def vmi(
    name: str,
    *,
    guest_memory: str = "1Gi",
    cores: int = 1,
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    not_migratable: str | None = None,
    **spec: object,
) -> Object:
    """A VMI as virt-api would have stored it: with its defaults, its finalizer and no volumes.

    `not_migratable` is the reason why its node will report LiveMigratable False.
    """
    own_annotations = dict(annotations or {})
    if not_migratable is not None:
        own_annotations[NOT_MIGRATABLE_ANNOTATION] = not_migratable
    topology = {"cores": cores, "sockets": 1, "threads": 1}
    memory = {
        "guestAtBoot": guest_memory,
        "guestCurrent": guest_memory,
        "guestRequested": guest_memory,
    }
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": dict(labels or {}),
            "annotations": own_annotations,
            "finalizers": ["foregroundDeleteVirtualMachine"],
        },
        "spec": {
            "architecture": "amd64",
            "domain": {
                "cpu": {**topology, "model": "host-model"},
                "devices": {},
                "machine": {"type": "q35"},
                "memory": {"guest": guest_memory},
                "resources": {"requests": {"memory": guest_memory}},
            },
            "evictionStrategy": "LiveMigrate",
            "terminationGracePeriodSeconds": 0,
            **spec,
        },
        "status": {
            "phase": "Pending",
            "currentCPUTopology": topology,
            "memory": memory,
            "runtimeUser": 107,
        },
    }


def pod(
    name: str,
    *,
    memory: str = "100Mi",
    cpu: str = "10m",
    node: str | None = None,
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    **spec: object,
) -> Object:
    """A pod with one container; `node` puts it there past the scheduler."""
    container = {
        "name": "main",
        "image": "main:test",
        "resources": {"requests": {"memory": memory, "cpu": cpu}},
    }
    binding = {} if node is None else {"nodeName": node}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels or {})},
        "spec": {
            "containers": [container],
            "terminationGracePeriodSeconds": 0,
            **binding,
            **spec,
        },
    }


def migration(
    name: str, vmi_name: str, *, target_hostname: str | None = None, namespace: str = "default"
) -> Object:
    """A migration as a user would ask for it; anywhere, or to the node with that hostname."""
    spec: Object = {"vmiName": vmi_name}
    if target_hostname is not None:
        spec["addedNodeSelector"] = {"kubernetes.io/hostname": target_hostname}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstanceMigration",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }
