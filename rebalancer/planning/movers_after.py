"""The movers once a proposal has been accepted, from those before it: few of them have changed."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import compress

import numpy as np
from msgspec.structs import replace

from rebalancer.model.change import Change
from rebalancer.model.objects import ObjectKey, Pod, PodAffinityTerm
from rebalancer.model.plan import Refusal
from rebalancer.planning.movers import Movers, refusal_of
from rebalancer.planning.placement import PlacementClass, own_rules_allow
from rebalancer.scheduling.filters.inter_pod_affinity import (
    barred_pods,
    barring_terms,
    bars_only_its_own,
    clear_of,
)
from rebalancer.scheduling.state import BoolArray, ClusterState


def movers_after(change: Change, movers: Movers, state: ClusterState) -> Movers | None:
    """What `find_movers` would find in the state, which is `movers.state` after the change.

    None where more may be new than is followed here: VMs that could not be moved before, or what
    attached pods, claims and nodes that take no more volumes mean for those that stay.
    """
    snapshot = state.snapshot
    positions = snapshot.changed_by(change)
    pods = [snapshot.pods[position] for position in positions]
    if any(pod.attached_to or _takes_claim(pod, movers.state) for pod in pods):
        return None
    if _fills_up(positions, movers, state):
        return None
    refusals = []
    for key in _concerned(change, pods, movers):
        refusal = refusal_of(snapshot.vmi_by_key[key], snapshot, movers.context)
        if refusal is None:
            return None
        refusals.append(refusal)
    stays = np.ones(len(movers.vmis), np.bool_)
    stays[[*_indexes(refusals, movers)]] = False
    classes = _Classes(movers, stays, state)
    for term, nodes in _barring(positions, movers.state, state).items():
        classes.bar(term, nodes)
    classes.renumber()
    classes.work_out(_rules_looking_at(pods, movers))
    after = replace(
        movers,
        state=state,
        vmis=tuple(compress(movers.vmis, stays.tolist())),
        source_pod=movers.source_pod[stays],
        kind=movers.kind[stays],
        cost=movers.cost[stays],
        mover_class=classes.of_mover,
        classes=classes.made(),
        allowed=classes.allowed,
        refused=_with(refusals, movers),
    )
    if classes.are_as_before and "charge" in vars(movers):
        # Of thousands of classes on thousands of nodes it is the largest array.
        vars(after)["charge"] = movers.charge
    return after


def _takes_claim(pod: Pod, before: ClusterState) -> bool:
    """Whether the pod has a claim for itself that no other pod had."""
    keys = [ObjectKey(pod.namespace, name) for name in pod.claim_names]
    claims = before.snapshot.claim_by_key
    return any(
        key in claims and claims[key].is_read_write_once_pod and key not in before.claims_in_use
        for key in keys
    )


def _fills_up(positions: Sequence[int], movers: Movers, state: ClusterState) -> bool:
    """Whether a node may now be unable to take volumes of a mover, so that kinds tell it apart."""
    arrived = [
        (volume.driver, int(state.node_of_pod[position]))
        for position in positions
        for volume in state.volumes.of(state.snapshot.pods[position])
        if volume.driver in state.volumes.limits
    ]
    if not arrived:
        return False
    most = Counter[str]()
    for rules in movers.kinds.rules:
        most |= Counter(volume.driver for volume in state.volumes.of(rules.target_pod))
    return any(not state.volumes.has_room({driver: most[driver]}, j) for driver, j in arrived)


def _concerned(change: Change, pods: Sequence[Pod], movers: Movers) -> set[ObjectKey]:
    """VMIs with new pods or migrations."""
    snapshot = movers.state.snapshot
    uids = {pod.vmi_uid for pod in pods if pod.vmi_uid} & snapshot.vmi_by_uid.keys()
    migrating = {migration.vmi_key for migration in change.migrations}
    return {snapshot.vmi_by_uid[uid].key for uid in uids} | migrating & snapshot.vmi_by_key.keys()


def _indexes(refusals: Sequence[Refusal], movers: Movers) -> Iterator[int]:
    """Of movers that may not be moved any more."""
    for refusal in refusals:
        i = bisect_left(movers.vmis, refusal.vmi, key=lambda vmi: vmi.key)
        if i < len(movers.vmis) and movers.vmis[i].key == refusal.vmi:
            yield i


def _with(refusals: Sequence[Refusal], movers: Movers) -> Mapping[str, tuple[Refusal, ...]]:
    refused = dict(movers.refused)
    for refusal in refusals:
        home = movers.state.snapshot.vmi_by_key[refusal.vmi].node_name or ""
        others = [each for each in refused.get(home, ()) if each.vmi != refusal.vmi]
        refused[home] = tuple(sorted((*others, refusal), key=lambda each: each.vmi))
    return refused


def _barring(
    changed: Sequence[int], before: ClusterState, state: ClusterState
) -> Mapping[PodAffinityTerm, list[int]]:
    """Anti-affinity of pods that were nowhere before, and the nodes that they are on now."""
    nodes: dict[PodAffinityTerm, list[int]] = {}
    for position in changed:
        was_there = position < len(before.node_of_pod) and before.node_of_pod[position] >= 0
        node = int(state.node_of_pod[position])
        if not was_there and node >= 0:
            for term in state.snapshot.pods[position].pod_anti_affinity:
                if not bars_only_its_own(term, state):
                    nodes.setdefault(term, []).append(node)
    return nodes


def _rules_looking_at(pods: Sequence[Pod], movers: Movers) -> set[int]:
    """Indexes of movers' rules that may have another say with these pods where they are now."""
    kinds, volumes = movers.kinds, movers.state.volumes
    found = {number for pod in pods for number in kinds.rules_by_label.candidates(pod.labels)}
    has_ports = any(pod.host_ports for pod in pods)
    has_limits = any(v.driver in volumes.limits for pod in pods for v in volumes.of(pod))
    for number, rules in enumerate(kinds.rules if has_ports or has_limits else ()):
        target = rules.target_pod
        if (has_ports and target.host_ports) or (has_limits and target.claim_names):
            found.add(number)
    return found


class _Classes:
    """Movers' classes while pods come to nodes, so that those are split that a pod bars in part."""

    def __init__(self, movers: Movers, stays: BoolArray, state: ClusterState) -> None:
        self.of_mover = movers.mover_class[stays]
        self.allowed = movers.allowed.copy()
        self._kinds = movers.kinds
        self._kind = movers.kind[stays]
        self._source_pod = movers.source_pod[stays]
        self._state = state
        self._count = len(movers.classes)
        self._before = [*movers.classes]
        """What each of the present classes was, or was a part of."""

    def bar(self, term: PodAffinityTerm, nodes: Sequence[int]) -> None:
        """Pods with that anti-affinity have come to the nodes."""
        state, size = self._state, len(self._before)
        is_meant = np.zeros(len(state.snapshot.pods), np.bool_)
        is_meant[barred_pods(term, state)] = True
        is_meant = is_meant[self._source_pod]
        count = np.bincount(self.of_mover[is_meant], minlength=size)
        is_split = (count > 0) & (count < np.bincount(self.of_mover, minlength=size))
        number_of_meant = np.arange(size)
        if is_split.any():
            number_of_meant[is_split] = size + np.arange(is_split.sum())
            self.of_mover = np.where(is_meant, number_of_meant[self.of_mover], self.of_mover)
            self.allowed = np.concatenate([self.allowed, self.allowed[is_split]])
            self._before += [*compress(self._before, is_split.tolist())]
        barred = state.sharing_domain(term.topology_key, np.array(nodes, np.int64))
        self.allowed[np.ix_(number_of_meant[count > 0], barred)] = False

    def renumber(self) -> None:
        """In the order in which the movers have them; those that nobody has any more are gone."""
        size = len(self.of_mover)
        first = np.full(len(self._before), size)
        first[self.of_mover[::-1]] = np.arange(size)[::-1]
        order = np.argsort(first)[: np.count_nonzero(first < size)]
        self._first = first[order]
        self.are_as_before = np.array_equal(order, np.arange(self._count))
        if not self.are_as_before:
            number = np.empty(len(first), np.int64)
            number[order] = np.arange(len(order))
            self.of_mover = number[self.of_mover]
            self.allowed = self.allowed[order]
            self._before = [self._before[i] for i in order.tolist()]

    def work_out(self, rules: Collection[int]) -> None:
        """Those with these rules, by index, anew."""
        kinds, state = self._kinds, self._state
        rules_of_kind = np.array([kind.rules for kind in kinds.found], np.int64)
        rules_of_class = rules_of_kind[self._kind[self._first]]
        for number in np.flatnonzero(np.isin(rules_of_class, [*rules])).tolist():
            source_pod = state.snapshot.pods[self._source_pod[self._first[number]]]
            terms = barring_terms(source_pod, state)
            self.allowed[number] = (
                self._before[number].allowed_wherever_pods_are
                & own_rules_allow(kinds.rules[rules_of_class[number]].target_pod, state)
                & clear_of((t for t in terms if not bars_only_its_own(t, state)), state)
            )

    def made(self) -> tuple[PlacementClass, ...]:
        return tuple(
            PlacementClass(
                number, self.allowed[number], before.allowed_wherever_pods_are, before.charges
            )
            for number, before in enumerate(self._before)
        )
