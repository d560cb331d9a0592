"""The cluster that this project was asked for, as it stands when the seventh VM finds no room.

Three workers run two VMs of 8Gi each and could each take a third, none of them one of 16Gi. Names,
ages and what the workers' pods request are the request's; the rest is as KubeVirt makes it.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from uuid import NAMESPACE_DNS, uuid5

from rebalancer.cluster.simulated import SimulatedCluster
from rebalancer.cluster.simulation.agenda import Pace, no_pace
from rebalancer.model.keys import ARCHITECTURE, CREATED_BY, HOSTNAME
from rebalancer.model.objects import (
    EMPTY,
    Condition,
    Namespace,
    Node,
    NodeSelectorTerm,
    Pod,
    Requirement,
    Taint,
    Toleration,
    VirtualMachineInstance,
)
from rebalancer.model.quantity import parse_amount
from rebalancer.model.snapshot import Snapshot

STARTED_AT = datetime(2026, 1, 5, 9, tzinfo=UTC)

_GREEN = "worker-green.shift.toca.local"
_BLUE = "worker-blue.shift.toca.local"
_RED = "worker-red.shift.toca.local"
_CORDONED = "worker-grey.shift.toca.local"
_MASTERS = tuple(f"master-{number}.shift.toca.local" for number in range(3))

# The request gives 19858Mi, 18024Mi and 20166Mi as 64, 58 and 64 %, cut off; only 31025Mi to
# 31028Mi agree with all three.
_ALLOCATABLE_MEMORY = "31026Mi"
_REQUESTED_MEMORY = {_GREEN: "19858Mi", _BLUE: "18024Mi", _RED: "20166Mi"}

_MINUTES_OLD_BY_VM = {
    _GREEN: {"centos-stream8-empty-whitefish": 11, "centos7-loud-bear": 13},
    _BLUE: {"fedora-advanced-goose": 12, "fedora-civil-spoonbill": 11},
    _RED: {"fedora-frozen-stingray": 11, "centos-stream9-useless-raven": 13},
}
_BIG_VM = "rhel7-red-llama"
_BIG_VM_MINUTES_OLD = 14

# What pods of virt-controller v1.8.4 request for guests of one virtual CPU: the guest's memory with
# KubeVirt's overhead, and 5m and 35M more for the container that keeps the serial console's log.
_LAUNCHER_CPU = "105m"
_LAUNCHER_MEMORY = {"8Gi": "8922730176", "16Gi": "17529441985"}
_DEVICES = tuple(f"devices.kubevirt.io/{device}" for device in ("kvm", "tun", "vhost-net"))
_CPU_MODEL = "Skylake-Server"


def request_cluster(pace: Pace = no_pace) -> SimulatedCluster:
    """The request's cluster, running; `pace` as in `SimulatedCluster`."""
    vms = [
        _vm(name, "8Gi", timedelta(minutes=minutes), node)
        for node, minutes_old in _MINUTES_OLD_BY_VM.items()
        for name, minutes in minutes_old.items()
    ]
    vms.append(_vm(_BIG_VM, "16Gi", timedelta(minutes=_BIG_VM_MINUTES_OLD), None))
    snapshot = Snapshot(
        taken_at=STARTED_AT,
        nodes=(
            *(_node(name) for name in (_GREEN, _BLUE, _RED)),
            _node(_CORDONED, is_unschedulable=True),
            *(
                _node(name, (Taint("node-role.kubernetes.io/master", "NoSchedule"),))
                for name in _MASTERS
            ),
        ),
        pods=(*(_cluster_services(node) for node in _REQUESTED_MEMORY), *(pod for _, pod in vms)),
        vmis=tuple(vmi for vmi, _ in vms),
        namespaces=tuple(
            Namespace(name, {"kubernetes.io/metadata.name": name})
            for name in ("default", "openshift-monitoring")
        ),
    )
    return SimulatedCluster(snapshot, pace=pace)


def _node(name: str, taints: tuple[Taint, ...] = (), *, is_unschedulable: bool = False) -> Node:
    allocatable = {
        "cpu": "16",
        "memory": _ALLOCATABLE_MEMORY,
        "ephemeral-storage": "500Gi",
        "pods": "250",
        **dict.fromkeys(_DEVICES, "1k"),
    }
    role = "master" if taints else "worker"
    return Node(
        name=name,
        allocatable=_amounts(allocatable),
        labels={
            HOSTNAME: name,
            ARCHITECTURE: "amd64",
            "kubernetes.io/os": "linux",
            f"node-role.kubernetes.io/{role}": "",
            "kubevirt.io/schedulable": "true",
            "machine-type.node.kubevirt.io/q35": "true",
            "cpu-vendor.node.kubevirt.io/Intel": "true",
            f"host-model-cpu.node.kubevirt.io/{_CPU_MODEL}": "true",
            f"cpu-model.node.kubevirt.io/{_CPU_MODEL}": "true",
            f"cpu-model-migration.node.kubevirt.io/{_CPU_MODEL}": "true",
        },
        taints=taints,
        is_unschedulable=is_unschedulable,
    )


def _vm(
    name: str, guest_memory: str, age: timedelta, node: str | None
) -> tuple[VirtualMachineInstance, Pod]:
    """A VMI and its launcher pod: running, or without a node since it was created."""
    created_at = STARTED_AT - age
    vmi = VirtualMachineInstance(
        namespace="default",
        name=name,
        uid=_uid("virtualmachineinstance", name),
        phase="Running" if node else "Scheduling",
        node_name=node,
        guest_memory_bytes=parse_amount(guest_memory, "memory"),
        architecture="amd64",
        live_migratable=Condition("True") if node else None,
        eviction_strategy="LiveMigrate",
    )
    pod_uid = _uid("pod", name)
    requests = {
        "cpu": _LAUNCHER_CPU,
        "memory": _LAUNCHER_MEMORY[guest_memory],
        "ephemeral-storage": "50M",
        "pods": "1",
        **dict.fromkeys(_DEVICES, "1"),
    }
    launcher = Pod(
        namespace="default",
        name=f"virt-launcher-{name}-{pod_uid[:5]}",
        uid=pod_uid,
        requests=_amounts(requests),
        phase="Running" if node else "Pending",
        node_name=node,
        labels={
            "kubevirt.io": "virt-launcher",
            CREATED_BY: vmi.uid,
            "vm.kubevirt.io/name": name,
            "vmi.kubevirt.io/id": name,
            **({"kubevirt.io/nodeName": node} if node else EMPTY),
        },
        annotations={"descheduler.alpha.kubernetes.io/request-evict-only": ""},
        created_at=created_at,
        vmi_uid=vmi.uid,
        node_selector={
            ARCHITECTURE: "amd64",
            "kubevirt.io/schedulable": "true",
            "machine-type.node.kubevirt.io/q35": "true",
        },
        node_affinity=(
            NodeSelectorTerm(
                (Requirement("node-labeller.kubevirt.io/obsolete-host-model", "DoesNotExist"),)
            ),
        ),
        tolerations=tuple(
            Toleration(f"node.kubernetes.io/{condition}", "Exists", effect="NoExecute")
            for condition in ("not-ready", "unreachable")
        ),
        unschedulable_since=None if node else created_at,
    )
    return vmi, launcher


def _cluster_services(node: str) -> Pod:
    """One pod in place of all those of the cluster's own on a worker."""
    vms = parse_amount(_LAUNCHER_MEMORY["8Gi"], "memory") * len(_MINUTES_OLD_BY_VM[node])
    memory_bytes = parse_amount(_REQUESTED_MEMORY[node], "memory") - vms
    name = f"cluster-services-{node.partition('.')[0]}"
    return Pod(
        namespace="openshift-monitoring",
        name=name,
        uid=_uid("pod", name),
        requests={"cpu": 500, "memory": memory_bytes, "pods": 1},
        node_name=node,
        created_at=STARTED_AT - timedelta(days=30),
    )


def _amounts(quantities: Mapping[str, str]) -> Mapping[str, int]:
    return {resource: parse_amount(text, resource) for resource, text in quantities.items()}


def _uid(kind: str, name: str) -> str:
    return str(uuid5(NAMESPACE_DNS, f"{name}.{kind}.shift.toca.local"))
