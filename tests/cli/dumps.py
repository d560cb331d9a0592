"""Dumps of small clusters in the way of `kubectl get -o json`."""

import json
from pathlib import Path
from typing import Any

from tests.cluster import wire_builders as wire

LATER = "2026-11-02T08:10:00Z"
"""When the scheduler last looked, ten minutes after everything was created."""
MESSAGE = "0/2 nodes are available: 2 Insufficient memory."

_LABELS = {
    "kubernetes.io/arch": "amd64",
    "kubevirt.io/schedulable": "true",
    "host-model-cpu.node.kubevirt.io/Skylake-Server": "true",
    "cpu-model-migration.node.kubevirt.io/Skylake-Server": "true",
}


def node(name: str, memory: str) -> wire.Json:
    made = wire.node(name, {"cpu": "16", "memory": memory, "pods": "110"})
    made["metadata"]["labels"].update(_LABELS)
    made["status"]["conditions"][0]["lastHeartbeatTime"] = LATER
    return made


def vm(name: str, memory: str, *, on: str, namespace: str = "shop") -> list[wire.Json]:
    """A running, live-migratable VM: its VMI and its launcher pod, which asks for just that much
    memory, now and after a migration.
    """
    condition = {"type": "LiveMigratable", "status": "True"}
    status = {"nodeName": on, "conditions": [condition]}
    vmi = wire.vmi(name, namespace=namespace, status=status)
    vmi["spec"]["domain"] = {
        "memory": {"guest": memory},
        "resources": {"requests": {"memory": memory}, "overcommitGuestOverhead": True},
        "devices": {"logSerialConsole": False},
    }
    return [vmi, _launcher(name, memory, namespace, nodeName=on)]


def pending_vm(name: str, memory: str, message: str = MESSAGE) -> list[wire.Json]:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": message,
        "lastTransitionTime": wire.CREATED,
    }
    vmi = wire.vmi(name)
    vmi["status"] = {"phase": "Scheduling"}
    launcher = _launcher(name, memory, "shop")
    launcher["status"] = {"phase": "Pending", "conditions": [condition]}
    return [vmi, launcher]


def _launcher(name: str, memory: str, namespace: str, **spec: Any) -> wire.Json:
    made = wire.launcher(name, namespace=namespace, **spec)
    made["spec"]["containers"] = [wire.container("compute", cpu="100m", memory=memory)]
    return made


def dump(file: Path, *objects: wire.Json) -> Path:
    file.write_text(json.dumps(wire.as_list(*objects)))
    return file


def one_move_away(file: Path, **pending: str) -> Path:
    """db may leave n1 for n2; then big fits on n1."""
    return dump(
        file,
        node("n1", "16Gi"),
        node("n2", "16Gi"),
        *vm("db", "10Gi", on="n1"),
        wire.pod("web", wire.container(memory="6Gi"), nodeName="n2"),
        *pending_vm("big", "12Gi", **pending),
    )


def without_a_way(file: Path) -> Path:
    """No node is large enough for big."""
    return dump(file, node("n1", "16Gi"), *vm("db", "10Gi", on="n1"), *pending_vm("big", "17Gi"))


def at_rest(file: Path) -> Path:
    """No VM waits for room."""
    return dump(file, node("n1", "16Gi"), *vm("db", "10Gi", on="n1"))
