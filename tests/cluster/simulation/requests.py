"""What tests ask of a simulated cluster, and what they read from it."""

from rebalancer.cluster.protocols import Hold, MigrationRequest
from rebalancer.cluster.simulated import SimulatedCluster
from rebalancer.model.objects import Migration, ObjectKey
from tests.builders import key


def request(name: str, vmi: str, to: str) -> MigrationRequest:
    return MigrationRequest(name, key(vmi), to, labels={}, annotations={})


def hold(
    on: str,
    *,
    of: str,
    admits: tuple[str, ...] = (),
    name: str = "lock",
    lifetime_seconds: int = 600,
    priority_class_name: str = "",
) -> Hold:
    """A lock pod for the VM `of`; `admits` names further VMs."""
    return Hold(
        name=name,
        namespace="rebalancer",
        node_name=on,
        beneficiary_uid=f"vmi-{of}",
        admitted_uids=(f"vmi-{of}", *(f"vmi-{other}" for other in admits)),
        priority_class_name=priority_class_name,
        lifetime_seconds=lifetime_seconds,
        image="pause",
    )


LOCK = ObjectKey("rebalancer", "lock")


def node_of(cluster: SimulatedCluster, pod: str) -> str | None:
    return cluster.read().pod_by_key[key(pod)].node_name


def message_of(cluster: SimulatedCluster, pod: str) -> str:
    return cluster.read().pod_by_key[key(pod)].unschedulable_message


def migration(cluster: SimulatedCluster, name: str) -> Migration:
    return next(each for each in cluster.read().migrations if each.name == name)


def events(cluster: SimulatedCluster) -> list[tuple[float, str]]:
    """The journal, with seconds since its first entry."""
    start = cluster.journal[0].at
    return [((entry.at - start).total_seconds(), entry.what) for entry in cluster.journal]
