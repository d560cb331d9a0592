"""The launcher pod that virt-controller would make as the target of a migration.

Source: kubevirt/kubevirt v1.8.4 pkg/virt-controller/watch/migration/migration.go,
createTargetPod and prepareNodeSelectorForHostCpuModel.
"""

from collections.abc import Mapping

from msgspec.structs import replace

from rebalancer.model.keys import ARCHITECTURE, HOSTNAME
from rebalancer.model.objects import Node, Pod, VirtualMachineInstance

_HOST_MODEL = "host-model-cpu.node.kubevirt.io/"
_HOST_MODEL_FEATURE = "host-model-required-features.node.kubevirt.io/"
_MIGRATION_MODEL = "cpu-model-migration.node.kubevirt.io/"
_FEATURE = "cpu-feature.node.kubevirt.io/"
_VENDOR = "cpu-vendor.node.kubevirt.io/"


def target_pod(vmi: VirtualMachineInstance, source_pod: Pod, source: Node) -> Pod:
    """The pod that will ask for a place when the VMI is migrated.

    It is rendered anew from the VMI, so a host name that only an earlier migration has left on
    the running pod does not count, and one on the VMI does.
    """
    return replace(
        source_pod,
        name=f"{source_pod.name} (migrated)",
        uid=f"{source_pod.uid}-target",
        node_name=None,
        phase="Pending",
        node_selector=_node_selector(vmi, source_pod, source),
    )


def lacks_host_model(vmi: VirtualMachineInstance, source_pod: Pod, source: Node) -> bool:
    """Whether KubeVirt could not make the target pod: no host model known of the source node."""
    return (
        vmi.has_host_model_cpu
        and not _migrated_before(source_pod)
        and not any(key.startswith(_HOST_MODEL) for key in source.labels)
    )


def _node_selector(vmi: VirtualMachineInstance, source_pod: Pod, source: Node) -> Mapping[str, str]:
    selector = {k: v for k, v in source_pod.node_selector.items() if k != HOSTNAME}
    selector.update(vmi.node_selector)
    if architecture := vmi.architecture or source.labels.get(ARCHITECTURE):
        selector.setdefault(ARCHITECTURE, architecture)
    if vmi.has_host_model_cpu and not _migrated_before(source_pod):
        selector.update(_host_model_selector(source))
    if not any(key.startswith(_VENDOR) for key in selector):
        selector.update({k: "true" for k in source.labels if k.startswith(_VENDOR)})
    return selector


def _migrated_before(source_pod: Pod) -> bool:
    """A pod that is itself a migration's target has these selectors, and hands them on."""
    return any(key.startswith((_FEATURE, _MIGRATION_MODEL)) for key in source_pod.node_selector)


def _host_model_selector(source: Node) -> Mapping[str, str]:
    selector = {}
    for key, value in source.labels.items():
        if key.startswith(_HOST_MODEL):
            selector[_MIGRATION_MODEL + key.removeprefix(_HOST_MODEL)] = value
        elif key.startswith(_HOST_MODEL_FEATURE):
            selector[_FEATURE + key.removeprefix(_HOST_MODEL_FEATURE)] = value
    return selector
