"""From a snapshot to the VMs that a loss of nodes would stop, and the pods to start them again."""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from rebalancer.headroom.room import Item, Room, Term
from rebalancer.model.keys import HOSTNAME
from rebalancer.model.objects import (
    Amounts,
    CsiVolume,
    ObjectKey,
    Pod,
    PodAffinityTerm,
    VirtualMachineInstance,
)
from rebalancer.model.snapshot import Snapshot
from rebalancer.scheduling.claimed_volumes import claimed_volumes
from rebalancer.scheduling.feasibility import all_allow
from rebalancer.scheduling.filters import STATIC_RULES
from rebalancer.scheduling.filters.inter_pod_affinity import barring_terms, meant_pods
from rebalancer.scheduling.filters.volume_binding import claim_problems
from rebalancer.scheduling.own_launchers import is_off_its_launchers
from rebalancer.scheduling.state import BoolArray, ClusterState, IntArray
from rebalancer.scheduling.target_pod import released_requests


class Restart(NamedTuple):
    """A VM, and what starting it again asks for."""

    vmi: ObjectKey
    priority: int
    node: int
    """Index of the node that it runs on."""
    requests: Amounts
    item: Item
    is_decidable: bool
    """Whether its rules are all among those that are followed here: of the rules that depend on
    other pods, only anti-affinity is."""
    rank: int = 0
    """VMs are started in the order of their ranks: higher priority first, then larger ones."""


class Restarts(NamedTuple):
    """All VMs that run somewhere, and the room there is for them."""

    resources: tuple[str, ...]
    """In the order of the room's resource axis."""
    room: Room
    by_node: Mapping[int, tuple[Restart, ...]]
    """In the order of their ranks."""


def find_restarts(state: ClusterState, min_priority: int | None = None) -> Restarts:
    """The VMs of that priority or a higher one, on ready nodes and others.

    Each is started as the pod that it has now, hot-plugged volumes included, with the same rules,
    but not held to its node by a migration that brought it there. Where a migration has put in
    what the CPU must have, that stays: it makes a place harder to find, not easier.
    """
    reader = _Reader(state)
    restarts = [
        reader.restart(vmi, pod)
        for vmi in state.snapshot.vmis
        if (pod := running_pod(vmi, state)) is not None
    ]
    resources, room = reader.room()

    def order(restart: Restart) -> tuple[object, ...]:
        kind = restart.item.kind
        return -restart.priority, -room.size[kind], kind, restart.vmi

    by_node: dict[int, list[Restart]] = defaultdict(list)
    for rank, restart in enumerate(sorted(restarts, key=order)):
        if min_priority is None or restart.priority >= min_priority:
            by_node[restart.node].append(restart._replace(rank=rank))
    return Restarts(resources, room, {node: tuple(found) for node, found in by_node.items()})


def running_pod(vmi: VirtualMachineInstance, state: ClusterState) -> Pod | None:
    """The launcher pod that goes with its node; where the node is not ready, kubelet cannot end
    the pod, so that it stays although it is being deleted.
    """
    if vmi.is_terminating or vmi.phase in {"Succeeded", "Failed"}:
        return None
    for pod in state.snapshot.launchers_by_vmi.get(vmi.uid, ()):
        node = state.index.get(pod.node_name or "")
        if node is not None and pod.node_name == vmi.node_name:
            return None if pod.is_terminating and state.is_ready[node] else pod
    return None


def started_anew(vmi: VirtualMachineInstance, pod: Pod, snapshot: Snapshot) -> Pod:
    """The VM's pod after a loss: what `pod` and its attachments ask for, and not yet placed."""
    return replace(
        _with_attachments(pod, snapshot),
        node_name=None,
        phase="Pending",
        migration_uid=None,
        node_selector=_own_selector(vmi, pod),
        requests=released_requests(pod, snapshot),
        is_terminating=False,
    )


def _with_attachments(pod: Pod, snapshot: Snapshot) -> Pod:
    """With the claims of hot-plugged volumes."""
    attachments = snapshot.attachments_by_launcher.get(pod.uid, ())
    claims = tuple(name for each in (pod, *attachments) for name in each.claim_names)
    return replace(pod, claim_names=claims) if attachments else pod


def _own_selector(vmi: VirtualMachineInstance, pod: Pod) -> Mapping[str, str]:
    """Without its node's name, where a migration has put that in."""
    selector = pod.node_selector
    if HOSTNAME in selector and HOSTNAME not in vmi.node_selector:
        return {key: value for key, value in selector.items() if key != HOSTNAME}
    return selector


class _Reader:
    """Tells kinds and terms apart by number."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._numbers = _Numbers()
        self._mask_of: dict[tuple[object, ...], int] = {}
        self._masks: list[BoolArray] = []
        self._kinds: dict[tuple[object, ...], int] = {}
        self._requests: list[Amounts] = []
        self._allowed_of: list[int] = []
        self._volumes = _LimitedVolumes(state)
        self._terms: dict[PodAffinityTerm, int] = {}

    def restart(self, vmi: VirtualMachineInstance, pod: Pod) -> Restart:
        snapshot = self._state.snapshot
        claiming = _with_attachments(pod, snapshot)
        claims = claiming.claim_names
        requests = released_requests(pod, snapshot)
        if claims:
            requests = self._volumes.added_to(requests, claiming)
        has_problem = bool(claims) and bool(claim_problems(claiming, self._state))
        holds, meant = self._apart(pod)
        is_decidable = not (
            has_problem
            or pod.pod_affinity
            or pod.topology_spread
            or pod.host_ports
            or pod.unmodelled
            or pod.scheduler_name != "default-scheduler"
            or (claims and self._volumes.are_in_doubt(claiming))
        )
        kind = self._kind(vmi, claiming, requests, follows_claims=not has_problem)
        item = Item(kind, holds, meant)
        node = self._state.index[pod.node_name or ""]
        return Restart(vmi.key, pod.priority, node, requests, item, is_decidable)

    def room(self) -> tuple[tuple[str, ...], Room]:
        """For all that has been read, and the names of its resources."""
        state = self._state
        names = sorted({name for each in self._requests for name, n in each.items() if n})
        headroom, allocatable = (
            np.column_stack([amounts(name) for name in names]).reshape(len(state.nodes), -1)
            if names
            else np.zeros((len(state.nodes), 0), np.int64)
            for amounts in (self._headroom, self._allocatable)
        )
        rows = [[each.get(name, 0) for name in names] for each in self._requests]
        requests = np.array(rows, np.int64).reshape(len(rows), len(names))
        terms = list(self._terms)
        known: dict[int, Term] = {}

        def term(number: int) -> Term:
            if number not in known:
                known[number] = self._term(terms[number])
            return known[number]

        room = Room(headroom, allocatable, requests, self._masks, self._allowed_of, term)
        return tuple(names), room

    def _headroom(self, resource: str) -> IntArray:
        room = self._volumes.headroom(resource)
        return self._state.headroom(resource) if room is None else room

    def _allocatable(self, resource: str) -> IntArray:
        limit = self._volumes.limit(resource)
        return self._state.allocatable(resource) if limit is None else limit

    def _kind(
        self, vmi: VirtualMachineInstance, pod: Pod, requests: Amounts, *, follows_claims: bool
    ) -> int:
        selector = _own_selector(vmi, pod)
        volumes = claimed_volumes(pod, self._state.snapshot) if pod.claim_names else ()
        rules = (
            self._numbers.of(selector, lambda: frozenset(selector.items())),
            self._numbers.of(pod.node_affinity, lambda: pod.node_affinity),
            self._numbers.of(pod.tolerations, lambda: pod.tolerations),
            # Of volumes that can be reached everywhere it does not matter how many there are.
            frozenset((v.node_affinity, v.zones) for v in volumes if v.node_affinity or v.zones),
            follows_claims,
        )
        amounts = self._numbers.of(requests, lambda: frozenset(requests.items()))
        kind = self._kinds.get((rules, amounts))
        if kind is None:
            kind = self._kinds[rules, amounts] = len(self._kinds)
            if rules not in self._mask_of:
                claims = pod.claim_names if follows_claims else ()
                started = replace(pod, node_selector=selector, node_name=None, claim_names=claims)
                self._mask_of[rules] = len(self._masks)
                self._masks.append(all_allow(STATIC_RULES, started, self._state))
            self._requests.append(requests)
            self._allowed_of.append(self._mask_of[rules])
        return kind

    def _apart(self, pod: Pod) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Terms that the pod holds and those that mean it, but for what keeps the target of a
        migration off its own source.
        """
        meaning = barring_terms(pod, self._state) if self._state.placed_terms.holders else ()
        if not (pod.pod_anti_affinity or meaning):
            return (), ()
        holds, meant = (
            tuple(
                self._terms.setdefault(term, len(self._terms))
                for term in terms
                if not is_off_its_launchers(term, pod)
            )
            for terms in (pod.pod_anti_affinity, meaning)
        )
        return holds, meant

    def _term(self, term: PodAffinityTerm) -> Term:
        state = self._state
        nodes = state.placed.node
        return Term(
            domain=state.domains(term.topology_key).tolist(),
            holders=nodes[state.placed_terms.holders.get(term, [])],
            meant=nodes[meant_pods(term, state, in_doubt=True)],
        )


class _Numbers:
    """A number for each different thing; equal things are mostly one object, which is quick."""

    def __init__(self) -> None:
        # The thing is kept beside its number, so that no other object can get its id.
        self._by_identity: dict[int, tuple[object, int]] = {}
        self._by_content: dict[Hashable, int] = {}

    def of(self, thing: object, content: Callable[[], Hashable]) -> int:
        known = self._by_identity.get(id(thing))
        if known is None:
            number = self._by_content.setdefault(content(), len(self._by_content))
            known = self._by_identity[id(thing)] = thing, number
        return known[1]


_VOLUMES_OF = "attachable-volumes-csi-"
"""With a driver's name behind it: how Kubernetes has called the number of volumes that a node can
take. Source: GetCSIAttachLimitKey in kubernetes v1.36.3 pkg/volume/util/attach_limit.go."""

_UNLIMITED = 2**40


class _LimitedVolumes:
    """Volumes of drivers that limit how many a node takes, as one more resource for each driver."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    def added_to(self, requests: Amounts, pod: Pod) -> Amounts:
        limits = self._state.volumes.limits
        if not limits:
            return requests
        drivers = [v.driver for v in self._state.volumes.of(pod) if v.driver in limits]
        return {**requests, **Counter(_VOLUMES_OF + driver for driver in drivers)}

    def are_in_doubt(self, pod: Pod) -> bool:
        """Whether counting them does not tell where they can be: a volume that several VMs have
        needs one place for all of them.
        """
        volumes = self._state.volumes.of(pod)
        missing = {"CSINode", "VolumeAttachment"} & {*self._state.snapshot.missing}
        if "CSINode" in missing:
            return bool(volumes)
        limited = [v for v in volumes if v.driver in self._state.volumes.limits]
        return bool(limited) and (bool(missing) or any(self._users[v] > 1 for v in limited))

    def headroom(self, resource: str) -> IntArray | None:
        """(n,); None for what is no number of volumes."""
        volumes = self._state.volumes
        return self._of_nodes(resource, volumes.room)

    def limit(self, resource: str) -> IntArray | None:
        """As `headroom`, but with nothing there."""
        limits = self._state.volumes.limits
        return self._of_nodes(resource, lambda driver, node: limits[driver].get(node))

    def _of_nodes(self, resource: str, amount: Callable[[str, int], int | None]) -> IntArray | None:
        driver = resource.removeprefix(_VOLUMES_OF)
        if driver not in self._state.volumes.limits or driver == resource:
            return None
        amounts = (amount(driver, node) for node in range(len(self._state.nodes)))
        return np.array([_UNLIMITED if each is None else each for each in amounts], np.int64)

    @cached_property
    def _users(self) -> Counter[CsiVolume]:
        users: dict[CsiVolume, set[str]] = defaultdict(set)
        for pod, _ in self._state.placements:
            for volume in self._state.volumes.of(pod) if pod.claim_names else ():
                users[volume].add(pod.vmi_uid or pod.uid)
        return Counter({volume: len(uids) for volume, uids in users.items()})
