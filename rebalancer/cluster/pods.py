"""A pod on the wire to a pod of the model."""

from collections.abc import Mapping
from datetime import UTC, datetime

from rebalancer.cluster import wire
from rebalancer.cluster.constraints import Constraints, host_ports
from rebalancer.cluster.fields import condition, required
from rebalancer.cluster.kinds import POD, VMI, Kind
from rebalancer.cluster.pod_requests import Containers, PodRequests
from rebalancer.model import keys
from rebalancer.model.objects import EMPTY, Pod

SINCE_EVER = datetime(1970, 1, 1, tzinfo=UTC)
"""Since when a pod has been unschedulable, where not even its creation is known."""

_ANNOTATIONS = ("descheduler.alpha.kubernetes.io/", "rebalancer/")


class PodConverter:
    """Converts the pods of one reading; what many have in common is converted and kept once."""

    def __init__(self) -> None:
        self._requests = PodRequests()
        self._constraints = Constraints()

    def convert(self, pod: wire.Pod) -> Pod:
        """Raises: FieldError."""
        metadata = pod.metadata or _NO_METADATA
        spec = pod.spec or _NO_SPEC
        status = pod.status or _NO_STATUS
        namespace = required(metadata.namespace, "metadata.namespace")
        labels = metadata.labels or EMPTY
        is_launcher = labels.get("kubevirt.io") == "virt-launcher"
        affinity = self._constraints.affinity(spec.affinity, namespace, labels)
        refusal = _refusal(status)
        is_unschedulable = refusal is not None and refusal.reason == "Unschedulable"
        containers = self._requests.of_containers(spec) if is_launcher else _NO_CONTAINERS
        return Pod(
            namespace=namespace,
            name=required(metadata.name, "metadata.name"),
            uid=required(metadata.uid, "metadata.uid"),
            requests=self._requests.of(spec, status),
            phase=required(status.phase, "status.phase"),  # every pod in an API server has one
            node_name=spec.node_name or None,
            labels=labels,
            annotations=_launcher_annotations(metadata) if is_launcher else EMPTY,
            created_at=metadata.creation_timestamp,
            is_terminating=metadata.deletion_timestamp is not None,
            nominated_node_name=status.nominated_node_name or None,
            vmi_uid=_vmi_uid(metadata) if is_launcher else None,
            migration_uid=labels.get(keys.MIGRATION_JOB_UID),
            node_selector=self._constraints.node_selector(spec.node_selector),
            node_affinity=affinity.node_terms,
            tolerations=self._constraints.tolerations(spec.tolerations),
            pod_affinity=affinity.pod,
            pod_anti_affinity=affinity.pod_anti,
            topology_spread=self._constraints.topology_spread(
                spec.topology_spread_constraints, labels
            ),
            host_ports=host_ports(spec),
            claim_names=_claim_names(spec),
            launcher_containers=containers.requests,
            limits=containers.limits,
            attached_to=_owner_uid(metadata, POD)
            if labels.get("kubevirt.io") == "hotplug-disk"
            else None,
            unmodelled=self._constraints.unmodelled(spec),
            priority=spec.priority or 0,
            priority_class_name=spec.priority_class_name or "",
            can_preempt=spec.preemption_policy != "Never",
            scheduler_name=spec.scheduler_name or "default-scheduler",
            unschedulable_since=_since(refusal, metadata) if is_unschedulable else None,
            unschedulable_message=(is_unschedulable and refusal and refusal.message) or "",
            is_gated=bool(spec.scheduling_gates)
            or (refusal is not None and refusal.reason == "SchedulingGated"),
        )


_NO_METADATA = wire.Metadata()
_NO_SPEC = wire.PodSpec()
_NO_STATUS = wire.PodStatus()
_NO_CONTAINERS = Containers({}, {})


def _refusal(status: wire.PodStatus) -> wire.Condition | None:
    """Why the scheduler has not placed the pod, where it has said so."""
    scheduled = condition(status.conditions, "PodScheduled")
    return scheduled if scheduled is not None and scheduled.status == "False" else None


def _since(refusal: wire.Condition | None, metadata: wire.Metadata) -> datetime:
    noted = refusal.last_transition_time if refusal else None
    return noted or metadata.creation_timestamp or SINCE_EVER


def _launcher_annotations(metadata: wire.Metadata) -> Mapping[str, str]:
    annotations = metadata.annotations or EMPTY
    return {key: annotations[key] for key in annotations if key.startswith(_ANNOTATIONS)}


def _vmi_uid(metadata: wire.Metadata) -> str | None:
    return _owner_uid(metadata, VMI) or (metadata.labels or EMPTY).get(keys.CREATED_BY)


def _owner_uid(metadata: wire.Metadata, kind: Kind) -> str | None:
    for owner in metadata.owner_references or ():
        if owner.controller and owner.kind == kind.name and owner.uid:
            return owner.uid
    return None


def _claim_names(spec: wire.PodSpec) -> tuple[str, ...]:
    claims = (volume.persistent_volume_claim for volume in spec.volumes or ())
    return tuple(claim.claim_name for claim in claims if claim)
