"""What tests look at in the cluster."""

from typing import NamedTuple

from tests.controlplane.api import Api, path_of
from tests.controlplane.scenario import BIG_VM

NAMESPACE = "kubevirt-rebalancer"
MIGRATIONS = path_of("virtualmachineinstancemigrations")


class Migrated(NamedTuple):
    """One VirtualMachineInstanceMigration, in short."""

    vm: str
    phase: str


def migrations(api: Api) -> list[Migrated]:
    return [
        Migrated(each["spec"]["vmiName"], each.get("status", {}).get("phase", ""))
        for each in api.list(MIGRATIONS)
    ]


def nodes_of_vms(api: Api) -> dict[str, str | None]:
    """Where each VM is, None for one without a node."""
    return {
        vmi["metadata"]["name"]: vmi.get("status", {}).get("nodeName")
        for vmi in api.list(path_of("virtualmachineinstances"))
    }


def lock_pods(api: Api) -> list[str]:
    return [pod["metadata"]["name"] for pod in api.list(path_of("pods", NAMESPACE))]


def unschedulable_message(api: Api, vm: str = BIG_VM) -> str:
    """What the scheduler says of a VM's launcher pod; empty before it has said anything."""
    for pod in api.list(path_of("pods"), labelSelector="kubevirt.io=virt-launcher"):
        owners = pod["metadata"].get("ownerReferences", [])
        if any(owner["name"] == vm for owner in owners):
            for condition in pod["status"].get("conditions", []):
                if condition["type"] == "PodScheduled" and condition["status"] == "False":
                    return str(condition.get("message", ""))
    return ""
