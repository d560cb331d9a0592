"""The launcher pod that virt-controller would make as the target of a migration.

It is rendered anew from the VMI and KubeVirt's settings. What else has changed the source pod on
its way into the cluster, such as a node selector of its namespace, will change the target as well;
so what the source pod has stays, wherever that makes the target harder to place, not easier.

Source: kubevirt/kubevirt v1.8.4 pkg/virt-controller/watch/migration/migration.go,
createTargetPod, createAttachmentPod and prepareNodeSelectorForHostCpuModel;
pkg/virt-controller/services/template.go, renderLaunchManifest.
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from msgspec.structs import replace

from rebalancer.model.keys import ARCHITECTURE, CPU_FEATURE, CREATED_BY, HOSTNAME
from rebalancer.model.objects import (
    Amounts,
    LabelSelector,
    LauncherSpec,
    Node,
    NodeSelectorTerm,
    Pod,
    PodAffinityTerm,
    Requirement,
    Toleration,
    VirtualMachineInstance,
)
from rebalancer.model.snapshot import Snapshot
from rebalancer.scheduling.launcher_requests import target_requests

T = TypeVar("T")

_HOST_MODEL = "host-model-cpu.node.kubevirt.io/"
_HOST_MODEL_FEATURE = "host-model-required-features.node.kubevirt.io/"
_MIGRATION_MODEL = "cpu-model-migration.node.kubevirt.io/"
_VENDOR = "cpu-vendor.node.kubevirt.io/"
_MACHINE_TYPE = "machine-type.node.kubevirt.io/"

_ADMISSION_TOLERATIONS = {
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/memory-pressure",
}
"""Taints that the API server makes pods tolerate of its own: DefaultTolerationSeconds and
PodTolerationRestriction in kubernetes v1.36.3 plugin/pkg/admission."""


def target_pod(vmi: VirtualMachineInstance, source_pod: Pod, snapshot: Snapshot) -> Pod:
    """The pod that will ask for a place when the VMI is migrated off the source pod's node.

    Its request includes that of the pod that brings hot-plugged volumes after it, and its claims
    are those of both, since one is of no use without the other.
    """
    spec = vmi.launcher or LauncherSpec()
    source = snapshot.node_by_name[source_pod.node_name or ""]
    requests = source_pod.requests
    node_affinity, tolerations = source_pod.node_affinity, source_pod.tolerations
    if vmi.launcher is not None:
        requests = target_requests(source_pod, spec, snapshot.launcher_configuration)
        node_affinity = _node_affinity(spec, source_pod)
        tolerations = _tolerations(spec, source_pod)
    attachments = snapshot.attachments_by_launcher.get(source_pod.uid, ())
    claims = (claim for pod in (source_pod, *attachments) for claim in pod.claim_names)
    return replace(
        source_pod,
        name=f"{source_pod.name} (migrated)",
        uid=f"{source_pod.uid}-target",
        node_name=None,
        phase="Pending",
        requests=_sum(requests, attachments),
        node_selector=_node_selector(vmi, spec, source_pod, source, snapshot),
        node_affinity=node_affinity,
        tolerations=tolerations,
        pod_affinity=_union(source_pod.pod_affinity, spec.pod_affinity),
        pod_anti_affinity=_union(
            source_pod.pod_anti_affinity, (*spec.pod_anti_affinity, off_its_launchers(vmi))
        ),
        claim_names=tuple(dict.fromkeys(claims)),
    )


def released_requests(source_pod: Pod, snapshot: Snapshot) -> Amounts:
    """What the source node gets back once the VM has left it."""
    return _sum(source_pod.requests, snapshot.attachments_by_launcher.get(source_pod.uid, ()))


def lacks_host_model(vmi: VirtualMachineInstance, source_pod: Pod, source: Node) -> bool:
    """Whether KubeVirt could not make the target pod: no host model known of the source node."""
    return (
        vmi.has_host_model_cpu
        and not _migrated_before(source_pod)
        and not any(key.startswith(_HOST_MODEL) for key in source.labels)
    )


def _node_selector(
    vmi: VirtualMachineInstance,
    spec: LauncherSpec,
    source_pod: Pod,
    source: Node,
    snapshot: Snapshot,
) -> Mapping[str, str]:
    """An earlier migration has left its target's host name on the running pod, which does not
    count; nor does the machine type once the VMI's status tells which one it has got.
    """
    settings = snapshot.launcher_configuration
    selector = {
        key: value
        for key, value in source_pod.node_selector.items()
        if key != HOSTNAME and not (spec.machine_type and key.startswith(_MACHINE_TYPE))
    }
    selector.update(settings.node_selector)
    selector.update(vmi.node_selector)
    if architecture := vmi.architecture or source.labels.get(ARCHITECTURE):
        selector.setdefault(ARCHITECTURE, architecture)
    if spec.machine_type:
        selector[_MACHINE_TYPE + spec.machine_type] = "true"
    if settings.checks_hyperv:
        selector.update(dict.fromkeys(spec.hyperv_labels, "true"))
    if vmi.has_host_model_cpu and not _migrated_before(source_pod):
        selector.update(_host_model_selector(source))
    if not any(key.startswith(_VENDOR) for key in selector):
        selector.update({k: "true" for k in source.labels if k.startswith(_VENDOR)})
    return selector


def _migrated_before(source_pod: Pod) -> bool:
    """A pod that is itself a migration's target has these selectors, and hands them on."""
    return any(key.startswith((CPU_FEATURE, _MIGRATION_MODEL)) for key in source_pod.node_selector)


def _host_model_selector(source: Node) -> Mapping[str, str]:
    selector = {}
    for key, value in source.labels.items():
        if key.startswith(_HOST_MODEL):
            selector[_MIGRATION_MODEL + key.removeprefix(_HOST_MODEL)] = value
        elif key.startswith(_HOST_MODEL_FEATURE):
            selector[CPU_FEATURE + key.removeprefix(_HOST_MODEL_FEATURE)] = value
    return selector


def _node_affinity(spec: LauncherSpec, source_pod: Pod) -> tuple[NodeSelectorTerm, ...] | None:
    """The VMI's terms, each with the labels that a node must not have.

    A VMI's affinity can be changed while it runs, and counts from its next migration on. Where the
    source pod's terms are others, both must hold.
    """
    rejected = tuple(Requirement(label, "DoesNotExist") for label in spec.rejected_labels)
    rendered = spec.node_affinity
    if rejected:
        terms = (NodeSelectorTerm(),) if rendered is None else rendered
        rendered = tuple(
            NodeSelectorTerm((*term.expressions, *rejected), term.fields) for term in terms
        )
    present = source_pod.node_affinity
    if present is None or present == rendered:
        return rendered
    if rendered is None:
        return present
    return tuple(
        NodeSelectorTerm(
            _union(one.expressions, other.expressions), _union(one.fields, other.fields)
        )
        for one in rendered
        for other in present
        if (one.expressions or one.fields) and (other.expressions or other.fields)
    )


def _tolerations(spec: LauncherSpec, source_pod: Pod) -> tuple[Toleration, ...]:
    added = (t for t in source_pod.tolerations if t.key in _ADMISSION_TOLERATIONS)
    return _union(spec.tolerations, added)


def off_its_launchers(vmi: VirtualMachineInstance) -> PodAffinityTerm:
    """Keeps the target off the node of the source pod."""
    return PodAffinityTerm(
        topology_key=HOSTNAME,
        selector=LabelSelector((Requirement(CREATED_BY, "In", (vmi.uid,)),)),
        namespaces=(vmi.namespace,),
    )


def _sum(requests: Amounts, more: Iterable[Pod]) -> Amounts:
    total = None
    for pod in more:
        total = dict(requests) if total is None else total
        for resource, amount in pod.requests.items():
            total[resource] = total.get(resource, 0) + amount
    return requests if total is None else total


def _union(one: Iterable[T], other: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys((*one, *other)))
