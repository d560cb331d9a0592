"""Movers that need the same, so that it is worked out once for all of them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from rebalancer.model.keys import ZONE
from rebalancer.model.objects import (
    Amounts,
    LabelSelector,
    PersistentVolume,
    Pod,
    PodAffinityTerm,
    VirtualMachineInstance,
)
from rebalancer.model.plan import Cost
from rebalancer.planning.cost import base_cost, prefers_no_eviction
from rebalancer.policy.model import CostPolicy
from rebalancer.scheduling.claimed_volumes import claimed_volumes
from rebalancer.scheduling.filters.inter_pod_affinity import barring_terms
from rebalancer.scheduling.filters.volume_binding import claim_problems
from rebalancer.scheduling.filters.volume_restrictions import claim_conflicts
from rebalancer.scheduling.label_index import LabelIndex
from rebalancer.scheduling.migration_policy import migration_configuration
from rebalancer.scheduling.own_launchers import off_others
from rebalancer.scheduling.state import ClusterState, IntArray
from rebalancer.scheduling.target_pod import TargetPods, released_requests

Signature = tuple[object, ...]


class Kind(NamedTuple):
    """What movers share that differ in nothing that planning looks at, save their past."""

    target_pod: Pod
    """One of theirs."""
    released: Amounts
    """What the source node gets back."""
    cost: Cost
    """Of a VM that has no past."""
    rules: int
    """Index of its rules."""


class Rules(NamedTuple):
    """Where movers may go as far as their own rules say."""

    static: Signature
    """Equal where the zone is, and all rules that depend on no other pods."""
    target_pod: Pod
    """One of theirs, without the rule that keeps it off its own node, where no VM goes anyway."""
    source: int
    """Index of a node in the zone that they come from."""


class Kinds:
    """The kinds of movers, and their rules, as far as they have been met.

    VMs are told apart by the identity of what the reader makes one object of, which takes no longer
    the more they ask for. Equal things that are not one merely make for more kinds; rules are told
    apart by what they say.
    """

    def __init__(self, state: ClusterState, policy: CostPolicy) -> None:
        self.found: list[Kind] = []
        self.rules: list[Rules] = []
        self.targets = TargetPods(state.snapshot)
        self._state = state
        self._snapshot = state.snapshot
        self._policy = policy
        self._by_identity: dict[Signature, int] = {}
        self._by_rules: dict[Signature, int] = {}
        self._place_of_node: dict[str | None, int] = {}
        self._places: dict[tuple[int, str | None], int] = {}
        self._terms: dict[tuple[PodAffinityTerm, ...], int] = {}

    @cached_property
    def asked(self) -> Mapping[str, IntArray]:
        """Resource to how much of it each kind's target pod asks for. Axis: `found`."""
        return _columns([kind.target_pod.requests for kind in self.found])

    @cached_property
    def released(self) -> Mapping[str, IntArray]:
        """As `asked`, what the source node gets back."""
        return _columns([kind.released for kind in self.found])

    @cached_property
    def rules_by_label(self) -> LabelIndex[int]:
        """Indexes of rules by the labels of other pods that they look at."""
        return LabelIndex(
            (selector, number)
            for number, rules in enumerate(self.rules)
            for selector in _selectors(rules.target_pod)
        )

    def of(self, vmi: VirtualMachineInstance, pod: Pod) -> int:
        """The index in `found` of the VM's kind; `pod` is its launcher pod."""
        identity = self._identity(vmi, pod)
        number = self._by_identity.get(identity)
        if number is None:
            number = self._by_identity[identity] = len(self.found)
            self.found.append(self._made_for(vmi, pod))
        return number

    def _identity(self, vmi: VirtualMachineInstance, pod: Pod) -> Signature:
        """All that the target pod, what is released, and the cost are worked out from."""
        snapshot = self._snapshot
        attached = snapshot.attachments_by_launcher.get(pod.uid, ())
        # The claims of pods attached to it are its target pod's as well.
        claiming = self.targets.of(vmi, pod) if attached or _hotplugs(vmi) else pod
        source = self._state.index[pod.node_name or ""]
        return (
            self._place(pod.node_name),
            id(vmi.launcher),
            vmi.guest_memory_bytes,
            vmi.architecture,
            vmi.has_host_model_cpu,
            tuple(vmi.node_selector.items()) if vmi.node_selector else (),
            prefers_no_eviction(vmi, pod),
            snapshot.migration_policies
            and migration_configuration(vmi, snapshot).bandwidth_bytes_per_second,
            id(pod.requests),
            id(pod.launcher_containers),
            id(pod.node_selector),
            id(pod.node_affinity),
            id(pod.tolerations),
            id(pod.pod_affinity),
            self._keeps_off(pod) if pod.pod_anti_affinity else 0,
            id(pod.topology_spread),
            pod.host_ports,
            pod.priority,
            _claims(claiming, self._state, source) if claiming.claim_names else (),
            _itself(pod) if _looks_at_itself(vmi, pod) else (),
            tuple(frozenset(each.requests.items()) for each in attached),
        )

    def _place(self, node_name: str | None) -> int:
        """Equal for nodes that put the same into selectors and are in one zone."""
        place = self._place_of_node.get(node_name)
        if place is None:
            node = self._snapshot.node_by_name[node_name or ""]
            labels = self.targets.selectors.source_labels(node.name)
            key = id(labels), node.labels.get(ZONE)
            place = self._place_of_node[node_name] = self._places.setdefault(key, len(self._places))
        return place

    def _keeps_off(self, pod: Pod) -> int:
        """Equal for equal anti-affinity, but for that to its own launcher pods."""
        terms = off_others(pod)
        return self._terms.setdefault(terms, len(self._terms) + 1) if terms else 0

    def _made_for(self, vmi: VirtualMachineInstance, pod: Pod) -> Kind:
        target = self.targets.of(vmi, pod)
        return Kind(
            target_pod=target,
            released=released_requests(pod, self._snapshot),
            cost=base_cost(vmi, target, self._snapshot, self._policy),
            rules=self._rules_of(target, self._state.index[pod.node_name or ""]),
        )

    def _rules_of(self, target: Pod, source: int) -> int:
        target = replace(target, pod_anti_affinity=off_others(target))
        zone = self._state.nodes[source].labels.get(ZONE)
        # Of target pods, equal node selectors are one object.
        static = zone, id(target.node_selector), _static_signature(target, self._state, source)
        signature = static, _dynamic_signature(target)
        number = self._by_rules.setdefault(signature, len(self.rules))
        if number == len(self.rules):
            self.rules.append(Rules(static, target, source))
        return number


def _columns(amounts: Sequence[Amounts]) -> Mapping[str, IntArray]:
    resources = {resource for each in amounts for resource in each}
    return {r: np.array([each.get(r, 0) for each in amounts], np.int64) for r in resources}


def placement_signature(pod: Pod, state: ClusterState) -> Signature:
    """Equal for pods that the rules treat alike on every node."""
    return (
        tuple(sorted(pod.node_selector.items())),
        _static_signature(pod, state, None),
        _dynamic_signature(pod),
        barring_terms(pod, state),
    )


def _static_signature(pod: Pod, state: ClusterState, source: int | None) -> Signature:
    """Of the pod's rules that depend on no other pods, and of its claims; without its selector.

    `source`: index of the node that it comes from.
    """
    return pod.node_affinity, pod.tolerations, _claims(pod, state, source)


def _dynamic_signature(pod: Pod) -> Signature:
    """Of the pod's own rules about other pods. Namespace and labels only count as far as rules look
    at them; labels hold the VM's own uid, and terms name their namespaces themselves.
    """
    return (
        pod.pod_affinity,
        pod.pod_anti_affinity,
        pod.topology_spread,
        pod.host_ports,
        _itself(pod) if pod.pod_affinity or pod.topology_spread else (),
    )


def _selectors(pod: Pod) -> Iterator[LabelSelector | None]:
    """Of the other pods that its rules depend on."""
    for term in (*pod.pod_affinity, *pod.pod_anti_affinity):
        yield term.selector
    for constraint in pod.topology_spread:
        yield constraint.selector


def _looks_at_itself(vmi: VirtualMachineInstance, pod: Pod) -> bool:
    """Whether rules of its target pod ask about the pod's own namespace and labels."""
    affinity = pod.pod_affinity or (vmi.launcher is not None and vmi.launcher.pod_affinity)
    return bool(affinity or pod.topology_spread)


def _itself(pod: Pod) -> Signature:
    return pod.namespace, *sorted(pod.labels.items())


def _hotplugs(vmi: VirtualMachineInstance) -> bool:
    return vmi.launcher is not None and bool(vmi.launcher.hotplugged_claims)


def _claims(pod: Pod, state: ClusterState, source: int | None) -> Signature:
    volumes = tuple(claimed_volumes(pod, state.snapshot))
    return (
        claim_problems(pod, state),
        tuple((each.node_affinity, each.zones, each.csi and each.csi.driver) for each in volumes),
        _counted(volumes, state, source),
        claim_conflicts(pod, state),
    )


def _counted(
    volumes: Sequence[PersistentVolume], state: ClusterState, source: int | None
) -> Signature:
    """Equal for volumes that count alike towards the drivers' limits on every node.

    A volume does not count where it is in use already. As a rule that is only where its pod comes
    from; if that node could take it once more anyway, it makes no difference.
    """
    limited = {v.csi for v in volumes if v.csi and v.csi.driver in state.volumes.limits}
    if not limited:
        return ()
    users = state.volumes.users
    elsewhere = Counter((v.driver, users.get(v, frozenset()) - {source}) for v in limited)
    counts = Counter(v.driver for v in limited)
    is_full = source is not None and not state.volumes.has_room(counts, source)
    return frozenset(elsewhere.items()), source if is_full else None
