"""The pod that brings a VM's hot-plugged volumes to a node, after its launcher pod.

A migration's target gets one for all volumes; the source may have more while volumes change.

Source: kubevirt/kubevirt v1.8.4 pkg/virt-controller/watch/migration/migration.go,
createAttachmentPod; pkg/virt-controller/services/template.go, RenderHotplugAttachmentPodTemplate.
"""

from rebalancer.model.objects import Amounts, LauncherSpec, Pod, VirtualMachineInstance
from rebalancer.model.snapshot import Snapshot


def arriving_attachment(
    vmi: VirtualMachineInstance, source_pod: Pod, snapshot: Snapshot
) -> Amounts:
    """What it asks for on the target node, of each resource not less than is released.

    Empty for a VM without hot-plugged volumes.
    """
    total = dict(released_attachments(source_pod, snapshot))
    if hotplugged_claims(vmi):
        rendered = {"pods": 1, **snapshot.launcher_configuration.attachment_requests}
        for resource, amount in rendered.items():
            total[resource] = max(total.get(resource, 0), amount)
    return total


def released_attachments(source_pod: Pod, snapshot: Snapshot) -> Amounts:
    """What goes with the source pod."""
    total: dict[str, int] = {}
    for pod in snapshot.attachments_by_launcher.get(source_pod.uid, ()):
        for resource, amount in pod.requests.items():
            total[resource] = total.get(resource, 0) + amount
    return total


def arriving_claims(
    vmi: VirtualMachineInstance, source_pod: Pod, snapshot: Snapshot
) -> tuple[str, ...]:
    """Those of the source's attachment pods, and of volumes for which there is none yet."""
    attachments = snapshot.attachments_by_launcher.get(source_pod.uid, ())
    present = (claim for pod in attachments for claim in pod.claim_names)
    return tuple(dict.fromkeys((*present, *hotplugged_claims(vmi))))


def hotplugged_claims(vmi: VirtualMachineInstance) -> tuple[str, ...]:
    return (vmi.launcher or LauncherSpec()).hotplugged_claims
