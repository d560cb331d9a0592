"""Goals about losses: the VMs of any one node, or zone, can start again on the rest."""

import hashlib
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from rebalancer.headroom.capacity import LargestVM, largest_vm
from rebalancer.headroom.failover import LossOutcome
from rebalancer.headroom.failover import Verdict as Outcome
from rebalancer.headroom.restarts import running_pod, started_anew
from rebalancer.model.objects import ObjectKey, Pod
from rebalancer.model.plan import Goal, Move, Proposal, Reason, Subject, Verdict
from rebalancer.model.quantity import format_amount
from rebalancer.model.snapshot import Snapshot
from rebalancer.model.wording import first_few
from rebalancer_strategies.spread_headroom.goals import COSTS_HEADROOM, NAME, made, migrations
from rebalancer_strategies.spread_headroom.headroom import Headroom
from rebalancer_strategies.spread_headroom.making_room import make_room
from rebalancer_strategies.spread_headroom.settings import FailureDomain

_MAX_PLANS = 5
"""Losses for which a plan is looked for in one cycle until one is found; the others wait."""


def loss_proposals(headroom: Headroom) -> Iterator[Proposal]:
    """One for each loss that would leave VMs down, or a single one that says that none would."""
    if headroom.settings.failure_domain is FailureDomain.NONE:
        return
    found = headroom.failover
    bad = [loss for loss in found.losses if loss.verdict is not Outcome.SURVIVES]
    figures = {"domains": float(len(found.losses)), "domainsLeavingVmsDown": float(len(bad))}
    kind = "node" if headroom.settings.failure_domain is FailureDomain.NODE else "zone"
    subject = Subject("FailureDomain", "", f"any {kind}", "loss-of-any")
    good = f"{len(found.losses) - len(bad)} of {len(found.losses)} {kind}s"
    largest = largest_vm(headroom.view.state, millicores_per_gib=0)
    figures["largestVmMemoryBytes"] = float(largest.memory_bytes) if largest else 0.0
    whole = Goal(
        NAME,
        subject,
        Verdict.UNPROVEN if bad else Verdict.MET,
        reasons=(
            Reason("losses", f"the VMs of {good} can start again elsewhere"),
            *_largest(largest),
            *_tied([key for loss in found.losses for key in loss.tied]),
        ),
        figures=figures,
    )
    yield Proposal(whole)
    tries = 0
    for loss in sorted(bad, key=lambda loss: (len(loss.left_down), loss.domain)):
        proposal = _proposal(loss, headroom, may_plan=tries < _MAX_PLANS)
        tries = _MAX_PLANS if proposal.moves else tries + 1
        yield proposal


def _largest(vm: LargestVM | None) -> Iterator[Reason]:
    if vm:
        amount = format_amount(vm.memory_bytes, "memory")
        text = f"the largest launcher pod that could start now may request {amount}"
        yield Reason("largest-vm", text, node=vm.node)


def _tied(vmis: Sequence[ObjectKey]) -> Iterator[Reason]:
    if vmis:
        text = (
            f"{len(vmis)} VMs could start again on no other node, were it empty: {first_few(vmis)}"
        )
        yield Reason("loss-tied", text)


def _proposal(loss: LossOutcome, headroom: Headroom, *, may_plan: bool) -> Proposal:
    view = headroom.view
    digest = hashlib.sha256(loss.domain.encode()).hexdigest()[:16]
    goal = Goal(
        NAME,
        Subject("FailureDomain", "", loss.domain, f"loss-of-{digest}"),
        Verdict.UNPROVEN,
        figures={"vmsLeftDown": float(len(loss.left_down))},
    )
    why = tuple(_reasons(loss))
    if loss.verdict is Outcome.NOT_PROVEN:
        return Proposal(replace(goal, reasons=why))
    if view.snapshot.migrations_in_flight:
        return Proposal(replace(goal, verdict=Verdict.WAITING, reasons=(*why, migrations(view))))
    if not may_plan:
        later = Reason("behind-others", "planned for once the losses before it are seen to")
        return Proposal(replace(goal, verdict=Verdict.WAITING, reasons=(*why, later)))
    lost, pods = _lost(loss, headroom)
    proposal = made(goal, make_room(pods, replace(view, snapshot=lost)), why)
    if proposal.moves and not _helps(proposal.moves, loss, headroom):
        return Proposal(replace(goal, reasons=(*why, COSTS_HEADROOM)))
    return proposal


def _reasons(loss: LossOutcome) -> Iterator[Reason]:
    names = [each.vmi for each in loss.left_down]
    down = f"{len(names)} of {loss.vms} VMs have no place: {first_few(names)}"
    yield Reason("loss", f"if {loss.domain} is lost, {down}" if names else f"{loss.domain}: unsure")
    if loss.shortage:
        yield Reason("shortage", str(loss.shortage))
    if loss.undecided:
        few = first_few(loss.undecided)
        text = f"{len(loss.undecided)} VMs have rules that are not followed here: {few}"
        yield Reason("loss-undecided", text)
    yield from _tied(loss.tied)


def _lost(loss: LossOutcome, headroom: Headroom) -> tuple[Snapshot, list[Pod]]:
    """The cluster without the nodes, and the pods of their VMs, which wait for a place there.

    VMs on nodes that are not ready wait as well. They are in the order in which they start.
    """
    state, snapshot = headroom.view.state, headroom.view.snapshot
    lost = {state.nodes[i].name for i in headroom.domains[loss.domain]}
    gone = lost | {node.name for node in snapshot.nodes if not node.is_ready}
    tied, least = set(loss.tied), headroom.settings.min_priority
    waiting = [
        started_anew(vmi, pod, snapshot)
        for vmi in snapshot.vmis
        if (pod := running_pod(vmi, state))
        and pod.node_name in gone
        and vmi.key not in tied
        and (least is None or pod.priority >= least)
    ]
    waiting.sort(key=lambda pod: (-pod.priority, -pod.requests.get("memory", 0), pod.key))
    staying = (pod for pod in snapshot.pods if pod.node_name not in gone)
    left = tuple(node for node in snapshot.nodes if node.name not in lost)
    return replace(snapshot, nodes=left, pods=(*staying, *waiting)), waiting


def _helps(moves: Sequence[Move], loss: LossOutcome, headroom: Headroom) -> bool:
    """Whether the loss is survived once the moves are done, and no other headroom is lost."""
    then = headroom.after(moves)
    (after,) = (each for each in then.failover.losses if each.domain == loss.domain)
    return after.verdict is Outcome.SURVIVES and headroom.is_kept(then)
