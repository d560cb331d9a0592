"""A generated cluster as a snapshot, with equal parts as one object, as the reader has them."""

from collections.abc import Mapping
from datetime import UTC, datetime

import numpy as np

from benchmarks.generator import CPU_GENERATIONS, ZONES, Cluster
from rebalancer.model.keys import CREATED_BY, HOSTNAME, ZONE
from rebalancer.model.objects import (
    EMPTY,
    Amounts,
    Condition,
    LabelSelector,
    Node,
    Pod,
    PodAffinityTerm,
    Requirement,
    VirtualMachineInstance,
)
from rebalancer.model.snapshot import Snapshot

_GENERATION = "cpu-feature.node.kubevirt.io/generation-"
_NAMESPACE = "default"
_MIGRATABLE = Condition("True")


def snapshot_of(cluster: Cluster) -> Snapshot:
    """Its nodes, VMs and other pods; the pending VM is left out, as is which VMs are pinned."""
    requests: dict[tuple[int, ...], Amounts] = {}

    def amounts(row: list[int]) -> Amounts:
        cpu, memory, pods = row
        found = {"cpu": cpu, "memory": memory * 2**20, "pods": pods}
        return requests.setdefault(tuple(row), found)

    zones, generations = cluster.zone.tolist(), cluster.cpu_generation.tolist()
    nodes = tuple(
        Node(
            f"n{i}",
            amounts(row),
            labels={
                HOSTNAME: f"n{i}",
                ZONE: f"zone-{zones[i]}",
                "kubevirt.io/schedulable": "true",
                **{f"{_GENERATION}{g}": "true" for g in range(generations[i] + 1)},
            },
        )
        for i, row in enumerate(cluster.allocatable.tolist())
    )
    pods = [
        Pod(_NAMESPACE, f"pod-{i}", f"pod-{i}", amounts(row), node_name=f"n{node}")
        for i, (node, row) in enumerate(
            zip(cluster.pod_node.tolist(), cluster.pod_request.tolist(), strict=True)
        )
    ]
    vmis = []
    selectors = _selectors()
    anti_affinity = {
        group: (_keeps_off_its_group(group),) for group in np.unique(cluster.vm_group).tolist()
    }
    vms = zip(
        cluster.vm_node.tolist(),
        cluster.vm_request.tolist(),
        cluster.vm_class.tolist(),
        cluster.vm_group.tolist(),
        strict=True,
    )
    for i, (node, row, vm_class, group) in enumerate(vms):
        name, uid, on = f"vm-{i}", f"vmi-{i}", f"n{node}"
        vmis.append(
            VirtualMachineInstance(_NAMESPACE, name, uid, node_name=on, live_migratable=_MIGRATABLE)
        )
        labels = {"kubevirt.io": "virt-launcher", CREATED_BY: uid, "vm.kubevirt.io/name": name}
        if group >= 0:
            labels["group"] = f"group-{group}"
        pods.append(
            Pod(
                _NAMESPACE,
                f"virt-launcher-{name}",
                f"launcher-{i}",
                amounts(row),
                node_name=on,
                labels=labels,
                vmi_uid=uid,
                node_selector=selectors[vm_class],
                pod_anti_affinity=anti_affinity[group] if group >= 0 else (),
            )
        )
    return Snapshot(
        datetime(2026, 1, 1, tzinfo=UTC), nodes=nodes, pods=tuple(pods), vmis=tuple(vmis)
    )


def _selectors() -> list[Mapping[str, str]]:
    """For each class of the generator: a zone or none, and a CPU that is not older."""
    return [
        {
            "kubevirt.io/schedulable": "true",
            **({ZONE: f"zone-{zone}"} if zone is not None else EMPTY),
            f"{_GENERATION}{oldest}": "true",
        }
        for zone in (None, *range(ZONES))
        for oldest in range(CPU_GENERATIONS)
    ]


def _keeps_off_its_group(group: int) -> PodAffinityTerm:
    selector = LabelSelector((Requirement("group", "In", (f"group-{group}",)),))
    return PodAffinityTerm(HOSTNAME, selector, (_NAMESPACE,))
