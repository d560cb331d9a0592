"""The small part of a large cluster that decides whether some pods may go to some nodes."""

from collections.abc import Collection, Iterator, Sequence

from msgspec.structs import replace

from rebalancer.model.keys import HOSTNAME
from rebalancer.model.objects import Node, ObjectKey, Pod, PodAffinityTerm
from rebalancer.model.snapshot import Snapshot
from rebalancer.scheduling.label_index import Label, required_labels


def narrowed(snapshot: Snapshot, pods: Sequence[Pod], nodes: Collection[str]) -> Snapshot:
    """The snapshot, but only with those pods that a filter may look at when it is asked about the
    given pods on the given nodes, and with their nodes, VMIs, claims and volumes.

    Whether a rule means a pod is answered without its namespace, so there may be more than needed.
    """
    kept = tuple(_concerned(snapshot, pods, nodes))
    keys = (ObjectKey(pod.namespace, name) for pod in (*kept, *pods) for name in pod.claim_names)
    known = snapshot.claim_by_key
    claims = {key: known[key] for key in dict.fromkeys(keys) if key in known}
    attachments = tuple(each for each in snapshot.volume_attachments if each.node_name in nodes)
    names = [claim.volume_name for claim in claims.values()]
    names += [attachment.volume_name for attachment in attachments]
    volumes = snapshot.volume_by_name
    vmis = snapshot.vmi_by_uid
    uids = dict.fromkeys(pod.vmi_uid for pod in kept if pod.vmi_uid)
    return replace(
        snapshot,
        nodes=tuple(_with_say(snapshot, pods, kept, nodes)),
        pods=kept,
        vmis=tuple(vmis[uid] for uid in uids if uid in vmis),
        claims=tuple(claims.values()),
        volumes=tuple(volumes[name] for name in dict.fromkeys(names) if name in volumes),
        volume_attachments=attachments,
    )


def _with_say(
    snapshot: Snapshot, pods: Sequence[Pod], kept: Sequence[Pod], nodes: Collection[str]
) -> Sequence[Node]:
    """The given nodes, and where pods are, or may be expected; all where pods are to be spread, as
    an empty domain counts then.
    """
    if any(pod.topology_spread for pod in pods):
        return snapshot.nodes
    names = {*nodes, *(name for pod in kept for name in (pod.node_name, pod.nominated_node_name))}
    hosts = {pod.node_selector.get(HOSTNAME) for pod in kept if pod.node_name is None} - {None}
    return [
        node
        for node in snapshot.nodes
        if node.name in names or (hosts and node.labels.get(HOSTNAME) in hosts)
    ]


def _concerned(snapshot: Snapshot, pods: Sequence[Pod], nodes: Collection[str]) -> Iterator[Pod]:
    """Pods that are there, or that may be expected there, and those that rules or claims tie to
    the given ones.
    """
    vmis = {pod.vmi_uid for pod in pods if pod.vmi_uid}
    launchers = {pod.uid for uid in vmis for pod in snapshot.launchers_by_vmi.get(uid, ())}
    claims = {name for pod in pods for name in pod.claim_names}
    selecting = _labels_selected_by(pods)
    barred = _Barred(pods)
    for pod in snapshot.pods:
        if (
            pod.node_name is None
            or pod.node_name in nodes
            or pod.vmi_uid in vmis
            or pod.attached_to in launchers
            or not claims.isdisjoint(pod.claim_names)
            or selecting is None
            or not selecting.isdisjoint(pod.labels.items())
            or (pod.pod_anti_affinity and barred.by(pod.pod_anti_affinity))
        ):
            yield pod


def _labels_selected_by(pods: Sequence[Pod]) -> set[Label] | None:
    """A pod that rules of these pods mean has at least one of these labels; None: any may be."""
    found: set[Label] = set()
    for pod in pods:
        terms = (*pod.pod_affinity, *pod.pod_anti_affinity)
        selectors = (
            *(term.selector for term in terms),
            *(constraint.selector for constraint in pod.topology_spread),
        )
        for selector in selectors:
            labels = required_labels(selector)
            if labels is None:
                return None
            found.update(labels)
    return found


class _Barred:
    """Whether anti-affinity may mean one of the pods."""

    def __init__(self, pods: Sequence[Pod]) -> None:
        self._labels = {label for pod in pods for label in pod.labels.items()}
        # Equal terms are mostly one object, which the snapshot keeps alive.
        self._known: dict[int, bool] = {}

    def by(self, terms: tuple[PodAffinityTerm, ...]) -> bool:
        known = self._known.get(id(terms))
        if known is None:
            known = self._known[id(terms)] = any(self._may_mean(term) for term in terms)
        return known

    def _may_mean(self, term: PodAffinityTerm) -> bool:
        labels = required_labels(term.selector)
        return labels is None or not self._labels.isdisjoint(labels)
