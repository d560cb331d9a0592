"""The node selector of a migration's target pod.

Source: kubevirt/kubevirt v1.8.4 pkg/virt-controller/watch/migration/migration.go
(prepareNodeSelectorForHostCpuModel); pkg/virt-controller/services/nodeselectorrenderer.go.
"""

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from rebalancer.model.keys import ARCHITECTURE, CPU_FEATURE, HOSTNAME
from rebalancer.model.objects import (
    LauncherConfiguration,
    LauncherSpec,
    Node,
    Pod,
    VirtualMachineInstance,
)
from rebalancer.model.snapshot import Snapshot

_HOST_MODEL = "host-model-cpu.node.kubevirt.io/"
_HOST_MODEL_FEATURE = "host-model-required-features.node.kubevirt.io/"
_MIGRATION_MODEL = "cpu-model-migration.node.kubevirt.io/"
_VENDOR = "cpu-vendor.node.kubevirt.io/"
_MACHINE_TYPE = "machine-type.node.kubevirt.io/"

Keys = tuple[str, ...]
Labels = tuple[tuple[str, str], ...]


class SourceLabels(NamedTuple):
    """What the labels of a source node put into selectors."""

    architecture: str
    host_model: Labels
    vendor: Labels


class TargetSelectors:
    """The selectors of one snapshot's target pods, each rendered once; equal ones are one object.

    A host model puts some eighty labels into each, and thousands of VMs share few shapes.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._nodes = snapshot.node_by_name
        self._settings = snapshot.launcher_configuration
        self._labels_of_node: dict[str, SourceLabels] = {}
        self._labels: dict[tuple[Keys, tuple[str, ...]], SourceLabels] = {}
        # Nodes have some hundred labels each, but few sets of keys.
        self._relevant = cache(_relevant)
        self._by_shape: dict[tuple[object, ...], Mapping[str, str]] = {}
        self._by_content: dict[frozenset[tuple[str, str]], Mapping[str, str]] = {}

    def of(self, vmi: VirtualMachineInstance, source_pod: Pod) -> Mapping[str, str]:
        """Of the VMI's target pod. The source pod must be the snapshot's."""
        source = self.source_labels(source_pod.node_name or "")
        spec = vmi.launcher or LauncherSpec()
        # Equal selectors of source pods are mostly one object, which the snapshot keeps alive.
        shape = (
            id(source_pod.node_selector),
            id(source),
            *(vmi.architecture, vmi.has_host_model_cpu, *vmi.node_selector.items()),
            *(spec.machine_type, *spec.hyperv_labels),
        )
        selector = self._by_shape.get(shape)
        if selector is None:
            rendered = _rendered(vmi, spec, source_pod, source, self._settings)
            selector = self._by_content.setdefault(frozenset(rendered.items()), rendered)
            self._by_shape[shape] = selector
        return selector

    def source_labels(self, node_name: str) -> SourceLabels:
        """What the node puts into selectors; one object for nodes that are labelled alike."""
        found = self._labels_of_node.get(node_name)
        if found is None:
            labels = self._nodes[node_name].labels
            relevant = self._relevant(tuple(labels))
            key = relevant, tuple([labels[each] for each in relevant])
            if key not in self._labels:
                self._labels[key] = _source_labels({each: labels[each] for each in relevant})
            found = self._labels_of_node[node_name] = self._labels[key]
        return found


def lacks_host_model(vmi: VirtualMachineInstance, source_pod: Pod, source: Node) -> bool:
    """Whether KubeVirt could not make the target pod: no host model known of the source node."""
    return needs_host_model(vmi, source_pod) and not has_host_model(source)


def needs_host_model(vmi: VirtualMachineInstance, source_pod: Pod) -> bool:
    """Whether the target pod is to select by the host model of the node that the VM leaves."""
    return vmi.has_host_model_cpu and not _migrated_before(source_pod)


def has_host_model(source: Node) -> bool:
    return any(key.startswith(_HOST_MODEL) for key in source.labels)


def _relevant(keys: Keys) -> Keys:
    prefixes = _HOST_MODEL, _HOST_MODEL_FEATURE, _VENDOR, ARCHITECTURE
    return tuple(key for key in keys if key.startswith(prefixes))


def _source_labels(labels: Mapping[str, str]) -> SourceLabels:
    host_model, vendor = [], []
    for key, value in labels.items():
        if key.startswith(_HOST_MODEL):
            host_model.append((_MIGRATION_MODEL + key.removeprefix(_HOST_MODEL), value))
        elif key.startswith(_HOST_MODEL_FEATURE):
            host_model.append((CPU_FEATURE + key.removeprefix(_HOST_MODEL_FEATURE), value))
        elif key.startswith(_VENDOR):
            vendor.append((key, "true"))
    return SourceLabels(labels.get(ARCHITECTURE, ""), tuple(host_model), tuple(vendor))


def _rendered(
    vmi: VirtualMachineInstance,
    spec: LauncherSpec,
    source_pod: Pod,
    source: SourceLabels,
    settings: LauncherConfiguration,
) -> Mapping[str, str]:
    """An earlier migration has left its target's host name on the running pod, which does not
    count; nor does the machine type once the VMI's status tells which one it has got.
    """
    selector = {
        key: value
        for key, value in source_pod.node_selector.items()
        if key != HOSTNAME and not (spec.machine_type and key.startswith(_MACHINE_TYPE))
    }
    selector.update(settings.node_selector)
    selector.update(vmi.node_selector)
    if architecture := vmi.architecture or source.architecture:
        selector.setdefault(ARCHITECTURE, architecture)
    if spec.machine_type:
        selector[_MACHINE_TYPE + spec.machine_type] = "true"
    if settings.checks_hyperv:
        selector.update(dict.fromkeys(spec.hyperv_labels, "true"))
    if needs_host_model(vmi, source_pod):
        selector.update(source.host_model)
    if not any(key.startswith(_VENDOR) for key in selector):
        selector.update(source.vendor)
    return selector


def _migrated_before(source_pod: Pod) -> bool:
    """A pod that is itself a migration's target has these selectors, and hands them on."""
    return any(key.startswith((CPU_FEATURE, _MIGRATION_MODEL)) for key in source_pod.node_selector)
