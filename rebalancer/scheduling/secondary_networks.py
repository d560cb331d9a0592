"""What a VM's secondary networks ask for, by their NetworkAttachmentDefinitions of today.

Source: kubevirt/kubevirt v1.8.4 pkg/network/multus/nad.go (NetworkToResource), which looks them up
whenever it renders a launcher pod, and pkg/virt-controller/services/renderresources.go
(WithNetworkResources).
"""

from rebalancer.model.objects import Amounts, LauncherSpec
from rebalancer.model.snapshot import Snapshot

_KIND = "NetworkAttachmentDefinition"


def network_resources(spec: LauncherSpec, snapshot: Snapshot) -> Amounts:
    """One device of its network's resource for each network that has one.

    Nothing of networks whose definitions the snapshot lacks: then those of the source pod hold.
    """
    total: dict[str, int] = {}
    for network in spec.networks:
        definition = snapshot.network_attachment_by_key.get(network)
        if definition is not None and definition.resource_name:
            total[definition.resource_name] = total.get(definition.resource_name, 0) + 1
    return total


def network_problem(spec: LauncherSpec, snapshot: Snapshot) -> str | None:
    """Why KubeVirt could not make another launcher pod: a definition is gone."""
    if not spec.networks or _KIND in snapshot.missing:
        return None
    for network in spec.networks:
        if network not in snapshot.network_attachment_by_key:
            return (
                f"{_KIND} {network} of its networks is not there, and KubeVirt makes no launcher"
                " pod without it"
            )
    return None
