"""What the rebalancer creates in a cluster."""

from typing import Any

from rebalancer.cluster.kinds import MIGRATION
from rebalancer.cluster.protocols import Hold, MigrationRequest
from rebalancer.model.keys import CREATED_BY, GOAL_UID, HOSTNAME

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
