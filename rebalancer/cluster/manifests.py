"""What the rebalancer creates in a cluster."""

import hashlib
from datetime import datetime
from typing import Any

from rebalancer.cluster.kinds import MIGRATION, NODE, VMI
from rebalancer.cluster.protocols import Hold, MigrationRequest, Notice
from rebalancer.model.keys import CREATED_BY, GOAL_UID, HOSTNAME

_LONGEST_MESSAGE_CHARACTERS = 1024
"""Of an Event. Source: NoteLengthLimit in kubernetes v1.36.3 pkg/apis/core/validation/events.go."""

_KINDS = {kind.name: kind for kind in (VMI, NODE)}

_APP = {"app.kubernetes.io/name": "kubevirt-rebalancer"}


def migration_manifest(request: MigrationRequest) -> dict[str, Any]:
    """A VirtualMachineInstanceMigration whose target pod can go to one node only."""
    return {
        "apiVersion": f"{MIGRATION.group}/v1",
        "kind": MIGRATION.name,
        "metadata": {
            "name": request.name,
            "namespace": request.vmi.namespace,
            "labels": {**_APP, **request.labels},
            "annotations": dict(request.annotations),
        },
        "spec": {
            "vmiName": request.vmi.name,
            "addedNodeSelector": {HOSTNAME: request.target_hostname},
        },
    }


def lock_pod_manifest(hold: Hold) -> dict[str, Any]:
    """A pod that is there already and bears no newcomers but the launchers that it admits.

    The scheduler honours the required anti-affinity of pods that are on a node; it never sees
    this one before that, as the node is named. It asks for nothing, tolerates what befalls the
    node, and the kubelet ends it after its lifetime. It fits the restricted pod security standard.
    """
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": hold.name,
            "namespace": hold.namespace,
            "labels": {**_APP, GOAL_UID: hold.beneficiary_uid},
        },
        "spec": {
            "nodeName": hold.node_name,
            **({"priorityClassName": hold.priority_class_name} if hold.priority_class_name else {}),
            "affinity": {
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "topologyKey": HOSTNAME,
                            "namespaceSelector": {},
                            "labelSelector": {
                                "matchExpressions": [
                                    {
                                        "key": CREATED_BY,
                                        "operator": "NotIn",
                                        "values": sorted(hold.admitted_uids),
                                    }
                                ]
                            },
                        }
                    ]
                }
            },
            "tolerations": [{"operator": "Exists"}],
            "activeDeadlineSeconds": hold.lifetime_seconds,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": {
                "runAsNonRoot": True,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": "lock",
                    "image": hold.image,
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "capabilities": {"drop": ["ALL"]},
                    },
                }
            ],
        },
    }


def event_manifest(notice: Notice, now: datetime) -> dict[str, Any]:
    """An Event whose name says what it tells, so that the same is not told twice in its lifetime.

    Those about an object without a namespace are in the namespace default, where kubectl looks.
    """
    subject, kind = notice.subject, _KINDS[notice.subject.kind]
    message = notice.message[:_LONGEST_MESSAGE_CHARACTERS]
    told = "\0".join((subject.uid, notice.reason, message))
    digest = hashlib.sha256(told.encode()).hexdigest()[:16]
    at = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"rebalancer-{digest}",
            "namespace": subject.namespace or "default",
            "labels": _APP,
        },
        "involvedObject": {
            "apiVersion": f"{kind.group}/{kind.version}" if kind.group else kind.version,
            "kind": kind.name,
            "namespace": subject.namespace,
            "name": subject.name,
            "uid": subject.uid,
        },
        "type": "Warning" if notice.is_warning else "Normal",
        "reason": notice.reason,
        "message": message,
        "source": {"component": "kubevirt-rebalancer"},
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }
