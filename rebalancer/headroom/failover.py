"""Whether the VMs of a lost node, or of a lost zone, start again on what is left.

Only VMs are asked about, not other pods that would come from there; and only room that nobody has
counts, not what pods of lower priority could be made to give up.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from rebalancer.headroom.placing import Placing
from rebalancer.headroom.restarts import Restart, Restarts, find_restarts
from rebalancer.headroom.room import Item, Loss
from rebalancer.headroom.search import Work, WorkLimitError, search
from rebalancer.headroom.shortage import TooFewSlots, TooLittle, shortage
from rebalancer.model.keys import ZONE
from rebalancer.model.objects import Amounts, ObjectKey
from rebalancer.model.quantity import format_amount
from rebalancer.scheduling.state import ClusterState

WORK_LIMIT = 400_000
"""Steps of the searches of all losses together; some two seconds."""

_WORK_LIMIT_OF_A_LOSS = 20_000


class Verdict(Enum):
    SURVIVES = "survives"
    """A place for each VM was found."""
    LEAVES_DOWN = "leaves-down"
    """No placing of all VMs exists."""
    NOT_PROVEN = "not-proven"


class LeftDown(Struct, frozen=True):
    """A VM without a place after the loss."""

    vmi: ObjectKey
    priority: int
    requests: Amounts


class SlotShortage(Struct, frozen=True):
    """VMs that each request at least so much, and more of them than nodes have room for."""

    requests: Amounts
    vms: int
    slots: int
    """How many pods with those requests fit on those nodes."""
    nodes: int
    """How many nodes that are left may take any of the VMs."""

    def __str__(self) -> str:
        amounts = ", ".join(f"{r} {format_amount(n, r)}" for r, n in self.requests.items())
        return (
            f"VMs that request at least {amounts} each: {self.vms};"
            f" room for such on the nodes that may take them ({self.nodes}): {self.slots}"
        )


class ResourceShortage(Struct, frozen=True):
    """VMs that together request more of a resource than nodes have."""

    resource: str
    requested: int
    headroom: int
    """Of all nodes that are left and would take one of the VMs."""
    vms: int
    nodes: int

    def __str__(self) -> str:
        return (
            f"VMs that request {self.resource}: {self.vms}, together"
            f" {format_amount(self.requested, self.resource)}; headroom of the nodes that take one"
            f" ({self.nodes}): {format_amount(self.headroom, self.resource)}"
        )


class LossOutcome(Struct, frozen=True):
    """What a loss of nodes means for the VMs on them."""

    domain: str
    """Name of the node or of the zone."""
    nodes: int
    vms: int
    """How many are to start again, those of nodes that are not ready included."""
    verdict: Verdict
    left_down: tuple[LeftDown, ...] = ()
    """VMs for which no place was found, in the order in which VMs are started. None of them could
    have had the room of one of lower priority that did find a place. Where the verdict is
    LEAVES_DOWN, no placing leaves down none at all, though one may leave down others."""
    shortage: SlotShortage | ResourceShortage | None = None
    """Why no placing exists; None where that was found out by trying all of them."""
    undecided: tuple[ObjectKey, ...] = ()
    """VMs with rules that are not followed here, such as pod affinity: no place was looked for."""
    tied: tuple[ObjectKey, ...] = ()
    """VMs that could run on no node that is left even if all were empty; no lack of room."""


class Failover(Struct, frozen=True):
    """The outcome of every loss."""

    already_lost: LossOutcome
    """Of the nodes that are not ready, without any further loss; its domain is empty."""
    losses: tuple[LossOutcome, ...]


def node_domains(state: ClusterState) -> dict[str, tuple[int, ...]]:
    """Each ready node by its name."""
    return {state.nodes[i].name: (i,) for i in np.flatnonzero(state.is_ready).tolist()}


def zone_domains(state: ClusterState) -> dict[str, tuple[int, ...]]:
    """The ready nodes of each zone; a node without that label is a domain of its own."""
    domains: dict[str, list[int]] = {}
    zones = state.label_values(ZONE)
    for i in np.flatnonzero(state.is_ready).tolist():
        domains.setdefault(zones[i] or state.nodes[i].name, []).append(i)
    return {name: tuple(nodes) for name, nodes in domains.items()}


def failover(
    state: ClusterState,
    domains: Mapping[str, Sequence[int]],
    *,
    min_priority: int | None = None,
    work_limit: int = WORK_LIMIT,
) -> Failover:
    """What the loss of each domain, given as indexes of nodes, would mean.

    VMs of nodes that are not ready are down already, so each loss has them to start as well.
    VMs whose priority is below `min_priority` are not asked about. Equal input gives equal output:
    what cannot be settled in so many steps is not proven.
    """
    judge = _Judge(state, find_restarts(state, min_priority), Work(work_limit))
    return Failover(judge.already_lost(), tuple(map(judge.outcome, domains, domains.values())))


class _Judge:
    """Of the losses of one state."""

    def __init__(self, state: ClusterState, restarts: Restarts, work: Work) -> None:
        self._resources, self._room, self._by_node = restarts
        self._work = work
        self._dead = np.flatnonzero(~state.is_ready).tolist()
        self._waiting = self._on(self._dead)
        self._waiting_kinds = {restart.item.kind for restart in self._waiting}
        self._base = self._place_waiting()

    def already_lost(self) -> LossOutcome:
        return self._outcome("", Loss(self._dead, self._room.node_count), self._waiting)

    def outcome(self, domain: str, nodes: Sequence[int]) -> LossOutcome:
        loss = Loss((*self._dead, *nodes), self._room.node_count)
        lost = self._on(nodes)
        if self._base is not None and self._fits_on_top(lost, nodes, loss, self._base):
            vms = len(self._waiting) + len(lost)
            return LossOutcome(domain, len(nodes), vms, Verdict.SURVIVES)
        return self._outcome(domain, loss, _in_order([*self._waiting, *lost]))

    def _on(self, nodes: Sequence[int]) -> list[Restart]:
        found = [restart for node in nodes for restart in self._by_node.get(node, ())]
        return _in_order(found)

    def _place_waiting(self) -> "_Base | None":
        """Places for all that are down already, so that each loss need not look for them again."""
        placing = Placing(self._room, Loss(self._dead, self._room.node_count))
        if not all(_place(restart, placing) for restart in self._waiting):
            return None
        at: dict[int, list[Restart]] = {}
        for restart, (_, node) in zip(self._waiting, placing.placed, strict=True):
            at.setdefault(node, []).append(restart)
        return _Base(placing, at)

    def _fits_on_top(
        self, lost: list[Restart], nodes: Sequence[int], loss: Loss, base: "_Base"
    ) -> bool:
        """Whether the lost VMs find places beside those that wait; the quick way, which most losses
        go. Where it ends nothing is known.
        """
        displaced = [restart for node in nodes for restart in base.at.get(node, ())]
        placing = Placing(self._room, loss, base.placing)
        return all(_place(restart, placing) for restart in _in_order([*lost, *displaced]))

    def _outcome(self, domain: str, loss: Loss, wanted: list[Restart]) -> LossOutcome:
        tied_kinds = {
            kind for kind in {r.item.kind for r in wanted} if not self._has_host(kind, loss)
        }
        tied = [r for r in wanted if r.item.kind in tied_kinds]
        asked = [r for r in wanted if r.item.kind not in tied_kinds]
        undecided = [r for r in asked if not r.is_decidable]
        left_down, proof = self._place_by_priority([r for r in asked if r.is_decidable], loss)
        if proof is None and (left_down or undecided):
            proof = self._shortage(asked, loss)
        if proof is not None:
            verdict = Verdict.LEAVES_DOWN
        else:
            verdict = Verdict.NOT_PROVEN if left_down or undecided else Verdict.SURVIVES
        return LossOutcome(
            domain=domain,
            nodes=len(loss.nodes) - len(self._dead),
            vms=len(wanted),
            verdict=verdict,
            left_down=tuple(LeftDown(r.vmi, r.priority, r.requests) for r in left_down),
            shortage=proof.shortage if proof else None,
            undecided=tuple(r.vmi for r in undecided),
            tied=tuple(r.vmi for r in tied),
        )

    def _has_host(self, kind: int, loss: Loss) -> bool:
        hosts = self._room.hosts(kind)
        return len(hosts) > len(loss.nodes) or bool(loss.is_left[hosts].any())

    def _place_by_priority(
        self, asked: list[Restart], loss: Loss
    ) -> tuple[list[Restart], "_Proof | None"]:
        """Those for which there is no place, and the proof that not all have one.

        Once a VM is left down, those placed stay where they are: any other placing might give one
        of lower priority the room that it lacked.
        """
        left_down: list[Restart] = []
        proof = None
        placing = Placing(self._room, loss)
        for priority, group in groupby(asked, key=lambda restart: restart.priority):
            failed = [restart for restart in group if not _place(restart, placing)]
            if failed and not left_down:
                so_far = [restart for restart in asked if restart.priority >= priority]
                proof = self._shortage(so_far, loss)
                found = None if proof else self._search(so_far, loss)
                if isinstance(found, Placing):
                    placing, failed = found, []
                elif found is not None:
                    proof = found
            left_down += failed
        return left_down, proof

    def _search(self, restarts: list[Restart], loss: Loss) -> "Placing | _Proof | None":
        """None where the search was given up."""
        work = self._work.share(_WORK_LIMIT_OF_A_LOSS)
        try:
            return search(self._room, loss, _items(restarts), work) or _Proof(None)
        except WorkLimitError:
            return None
        finally:
            self._work.give_back(work)

    def _shortage(self, restarts: list[Restart], loss: Loss) -> "_Proof | None":
        match shortage(self._room, loss, _items(restarts)):
            case TooFewSlots(request, items, slots, nodes):
                named = zip(self._resources, request.tolist(), strict=True)
                requests = {resource: amount for resource, amount in named if amount}
                return _Proof(SlotShortage(requests, items, slots, nodes))
            case TooLittle(resource, needed, headroom, items, nodes):
                name = self._resources[resource]
                return _Proof(ResourceShortage(name, needed, headroom, items, nodes))
            case None:
                return None


class _Base(NamedTuple):
    """Where the VMs that are down already find places."""

    placing: Placing
    at: Mapping[int, list[Restart]]
    """By node."""


class _Proof(NamedTuple):
    """That not all VMs have places; without a shortage, all placings have been tried."""

    shortage: SlotShortage | ResourceShortage | None


def _place(restart: Restart, placing: Placing) -> bool:
    node = placing.first_fit(restart.item) if restart.is_decidable else None
    if node is None:
        return False
    placing.take(restart.item, node)
    return True


def _in_order(restarts: list[Restart]) -> list[Restart]:
    return sorted(restarts, key=attrgetter("rank"))


def _items(restarts: Iterable[Restart]) -> list[Item]:
    return [restart.item for restart in restarts]
