"""Kubernetes objects as `kubectl get -o json` prints them; a test states only what matters."""

from typing import Any

Json = dict[str, Any]

CREATED = "2026-11-02T08:00:00Z"
ROOM = {"cpu": "16", "memory": "32Gi", "pods": "110"}


def node(name: str, allocatable: Json | None = None, *, ready: str = "True", **spec: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name},
            "creationTimestamp": CREATED,
        },
        "spec": spec,
        "status": {
            "allocatable": ROOM if allocatable is None else allocatable,
            "capacity": {**ROOM, "memory": "64Gi"},
            "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": CREATED}],
        },
    }


def container(name: str = "main", *, limits: Json | None = None, **requests: Any) -> Json:
    """Resource names come with `_` for `-`: `ephemeral_storage`."""
    resources: Json = {"requests": {key.replace("_", "-"): v for key, v in requests.items()}}
    if limits is not None:
        resources["limits"] = limits
    return {"name": name, "resources": resources}


def sidecar(name: str = "sidecar", **requests: Any) -> Json:
    return {**container(name, **requests), "restartPolicy": "Always"}


def pod(
    name: str,
    *containers: Json,
    namespace: str = "shop",
    labels: Json | None = None,
    status: Json | None = None,
    **spec: Any,
) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"{name}-uid",
            "labels": labels or {},
            "creationTimestamp": CREATED,
        },
        "spec": {"containers": list(containers) or [container()], **spec},
        "status": {"phase": "Running", **(status or {})},
    }


def launcher(vmi_name: str, *, namespace: str = "shop", **spec: Any) -> Json:
    """The launcher pod of a VMI that `vmi` has made."""
    made = pod(
        f"virt-launcher-{vmi_name}",
        container("compute", cpu="100m", memory="1Gi"),
        namespace=namespace,
        labels={"kubevirt.io": "virt-launcher", "kubevirt.io/created-by": f"{vmi_name}-uid"},
        **spec,
    )
    made["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachineInstance",
            "name": vmi_name,
            "uid": f"{vmi_name}-uid",
            "controller": True,
        }
    ]
    return made


def vmi(name: str, *, namespace: str = "shop", status: Json | None = None, **spec: Any) -> Json:
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"{name}-uid",
            "creationTimestamp": CREATED,
        },
        "spec": {"domain": {"memory": {"guest": "1Gi"}}, **spec},
        "status": {"phase": "Running", "nodeName": "n1", **(status or {})},
    }


def migration(name: str, vmi_name: str, *, namespace: str = "shop", **status: Any) -> Json:
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstanceMigration",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"{name}-uid",
            "creationTimestamp": CREATED,
        },
        "spec": {"vmiName": vmi_name},
        "status": status,
    }


def kubevirt(**migrations: Any) -> Json:
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "KubeVirt",
        "metadata": {"name": "kubevirt", "namespace": "kubevirt"},
        "spec": {"configuration": {"migrations": migrations}},
    }


def claim(
    name: str, volume_name: str | None = None, *, namespace: str = "shop", **spec: Any
) -> Json:
    """Bound, where it has a volume."""
    annotations = {"pv.kubernetes.io/bind-completed": "yes"} if volume_name else {}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace, "annotations": annotations},
        "spec": {"volumeName": volume_name, **spec},
    }


def volume(name: str, *, labels: Json | None = None, **spec: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
    }


def namespace(name: str, **labels: str) -> Json:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def quota(
    name: str,
    hard: Json,
    used: Json | None = None,
    *,
    namespace: str = "shop",
    **spec: Any,
) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"hard": hard, **spec},
        "status": {"hard": hard, "used": used or {}},
    }


def limit_range(name: str, *limits: Json, namespace: str = "shop") -> Json:
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"limits": list(limits)},
    }


def disruption_budget(
    name: str, match_labels: Json, *, owner: str = "", namespace: str = "shop"
) -> Json:
    owners = [{"kind": owner, "name": name, "uid": f"{name}-uid", "controller": True}]
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "ownerReferences": owners if owner else None,
        },
        "spec": {"selector": {"matchLabels": match_labels}, "maxUnavailable": 1},
    }


def as_list(*items: Json, kind: str = "List", api_version: str = "v1") -> Json:
    return {"apiVersion": api_version, "kind": kind, "metadata": {}, "items": list(items)}
