"""The launcher pod that virt-controller would make as the target of a migration.

It is rendered anew from the VMI and KubeVirt's settings. What else has changed the source pod on
its way into the cluster, such as a node selector of its namespace, will change the target as well;
so what the source pod has stays, wherever that makes the target harder to place, not easier.

Source: kubevirt/kubevirt v1.8.4 pkg/virt-controller/watch/migration/migration.go,
createTargetPod and createAttachmentPod; pkg/virt-controller/services/template.go,
renderLaunchManifest.
"""

from collections.abc import Iterable
from typing import TypeVar

from msgspec.structs import replace

from rebalancer.model.objects import (
    Amounts,
    LauncherSpec,
    NodeSelectorTerm,
    Pod,
    Requirement,
    Toleration,
    VirtualMachineInstance,
)
from rebalancer.model.snapshot import Snapshot
from rebalancer.scheduling.attachment_pods import (
    arriving_attachment,
    arriving_claims,
    released_attachments,
)
from rebalancer.scheduling.launcher_requests import target_requests
from rebalancer.scheduling.own_launchers import off_its_launchers
from rebalancer.scheduling.secondary_networks import network_resources
from rebalancer.scheduling.target_selectors import TargetSelectors

T = TypeVar("T")

_ADMISSION_TOLERATIONS = {
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/memory-pressure",
}
"""Taints that the API server makes pods tolerate of its own: DefaultTolerationSeconds and
PodTolerationRestriction in kubernetes v1.36.3 plugin/pkg/admission."""


class TargetPods:
    """Renders the target pods of one snapshot; equal node selectors are one object."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.selectors = TargetSelectors(snapshot)

    def of(self, vmi: VirtualMachineInstance, source_pod: Pod) -> Pod:
        """The pod that will ask for a place when the VMI is migrated off the source pod's node.

        Its request includes that of the pod that brings hot-plugged volumes after it, and its
        claims are those of both, since one is of no use without the other.
        """
        spec = vmi.launcher or LauncherSpec()
        node_affinity, tolerations = source_pod.node_affinity, source_pod.tolerations
        if vmi.launcher is not None:
            node_affinity = _node_affinity(spec, source_pod)
            tolerations = _tolerations(spec, source_pod)
        claims = (*source_pod.claim_names, *arriving_claims(vmi, source_pod, self._snapshot))
        return replace(
            source_pod,
            name=f"{source_pod.name} (migrated)",
            uid=f"{source_pod.uid}-target",
            node_name=None,
            phase="Pending",
            requests=arriving_requests(vmi, source_pod, self._snapshot),
            node_selector=self.selectors.of(vmi, source_pod),
            node_affinity=node_affinity,
            tolerations=tolerations,
            pod_affinity=_union(source_pod.pod_affinity, spec.pod_affinity),
            pod_anti_affinity=_union(
                source_pod.pod_anti_affinity, (*spec.pod_anti_affinity, off_its_launchers(vmi))
            ),
            claim_names=tuple(dict.fromkeys(claims)),
        )


def target_pod(vmi: VirtualMachineInstance, source_pod: Pod, snapshot: Snapshot) -> Pod:
    """As `TargetPods.of`, for a single one."""
    return TargetPods(snapshot).of(vmi, source_pod)


def arriving_requests(vmi: VirtualMachineInstance, source_pod: Pod, snapshot: Snapshot) -> Amounts:
    """What the target node must have room for; of each resource not less than is released."""
    requests = source_pod.requests
    if vmi.launcher is not None:
        requests = target_requests(
            source_pod,
            vmi.launcher,
            snapshot.launcher_configuration,
            network_resources(vmi.launcher, snapshot),
        )
    return _sum(requests, arriving_attachment(vmi, source_pod, snapshot))


def released_requests(source_pod: Pod, snapshot: Snapshot) -> Amounts:
    """What the source node gets back once the VM has left it."""
    return _sum(source_pod.requests, released_attachments(source_pod, snapshot))


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


def _sum(requests: Amounts, more: Amounts) -> Amounts:
    """The very same where there is no more, since thousands of pods share few of them."""
    if not more:
        return requests
    return {
        resource: requests.get(resource, 0) + more.get(resource, 0)
        for resource in dict.fromkeys((*requests, *more))
    }


def _union(one: Iterable[T], other: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys((*one, *other)))
