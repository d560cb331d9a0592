"""Goals about losses: the VMs of any one node, or zone, can start again on the rest."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from rebalancer.headroom.failover import Failover, LossOutcome, failover, node_domains, zone_domains
from rebalancer.headroom.failover import Verdict as Outcome
from rebalancer.model.keys import HOSTNAME
from rebalancer.model.objects import ObjectKey, Pod
from rebalancer.model.plan import Goal, Proposal, Reason, Subject, Verdict
from rebalancer.model.snapshot import Snapshot
from rebalancer.planning.replay import carried_out
from rebalancer.planning.view import View
from rebalancer.scheduling.state import ClusterState
from rebalancer_strategies.spread_headroom.goals import NAME, made, migrations
from rebalancer_strategies.spread_headroom.making_room import make_room
from rebalancer_strategies.spread_headroom.settings import FailureDomain, HeadroomSettings

_MAX_PLANS = 5
"""Losses for which a plan is looked for in one cycle until one is found; the others wait."""

_MAX_NAMES = 5


def losses(state: ClusterState, settings: HeadroomSettings) -> Failover:
    return failover(state, _domains(state, settings), min_priority=settings.min_priority)


def loss_proposals(settings: HeadroomSettings, view: View) -> Iterator[Proposal]:
    """One for each loss that would leave VMs down, or a single one that says that none would."""
    if settings.failure_domain is FailureDomain.NONE:
        return
    found = losses(view.state, settings)
    bad = [loss for loss in found.losses if loss.verdict is not Outcome.SURVIVES]
    figures = {"domains": float(len(found.losses)), "domainsLeavingVmsDown": float(len(bad))}
    kind = "node" if settings.failure_domain is FailureDomain.NODE else "zone"
    subject = Subject("FailureDomain", "", f"any {kind}", "loss-of-any")
    good = f"{len(found.losses) - len(bad)} of {len(found.losses)} {kind}s"
    whole = Goal(
        NAME,
        subject,
        Verdict.UNPROVEN if bad else Verdict.MET,
        reasons=(
            Reason("losses", f"the VMs of {good} can start again elsewhere"),
            *_tied([key for loss in found.losses for key in loss.tied]),
        ),
        figures=figures,
    )
    yield Proposal(whole)
    tries = 0
    for loss in sorted(bad, key=lambda loss: (len(loss.left_down), loss.domain)):
        proposal = _proposal(loss, settings, view, may_plan=tries < _MAX_PLANS)
        tries = _MAX_PLANS if proposal.moves else tries + 1
        yield proposal


def _tied(vmis: Sequence[ObjectKey]) -> Iterator[Reason]:
    if vmis:
        listed = ", ".join(map(str, vmis[:_MAX_NAMES]))
        text = f"{len(vmis)} VMs could start again on no other node, were it empty: {listed}"
        yield Reason("loss-tied", text)


def _proposal(
    loss: LossOutcome, settings: HeadroomSettings, view: View, *, may_plan: bool
) -> Proposal:
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
    nodes = {view.state.nodes[i].name for i in _domains(view.state, settings)[loss.domain]}
    lost, pods = _lost(nodes, loss, settings, view.snapshot)
    proposal = made(goal, make_room(pods, replace(view, snapshot=lost)), why)
    if proposal.moves and not _helps(proposal, loss, settings, view):
        spoils = Reason("no-plan", "the migrations that were found would leave other VMs down")
        return Proposal(replace(goal, reasons=(*why, spoils)))
    return proposal


def _domains(state: ClusterState, settings: HeadroomSettings) -> Mapping[str, Sequence[int]]:
    is_zone = settings.failure_domain is FailureDomain.ZONE
    return zone_domains(state) if is_zone else node_domains(state)


def _reasons(loss: LossOutcome) -> Iterator[Reason]:
    names = [str(each.vmi) for each in loss.left_down]
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    down = f"{len(names)} of {loss.vms} VMs have no place: {', '.join(names[:_MAX_NAMES])}{more}"
    yield Reason("loss", f"if {loss.domain} is lost, {down}" if names else f"{loss.domain}: unsure")
    if loss.shortage:
        yield Reason("shortage", str(loss.shortage))
    if loss.undecided:
        listed = ", ".join(map(str, loss.undecided[:_MAX_NAMES]))
        text = f"{len(loss.undecided)} VMs have rules that are not followed here: {listed}"
        yield Reason("loss-undecided", text)
    yield from _tied(loss.tied)


def _lost(
    nodes: set[str], loss: LossOutcome, settings: HeadroomSettings, snapshot: Snapshot
) -> tuple[Snapshot, list[Pod]]:
    """The cluster without the nodes, and the pods of their VMs, which wait for a place there.

    VMs on nodes that are not ready wait as well. They are in the order in which they start.
    """
    gone = nodes | {node.name for node in snapshot.nodes if not node.is_ready}
    tied = {snapshot.vmi_by_key[key].uid for key in loss.tied}
    least = settings.min_priority
    waiting: list[Pod] = []
    staying: list[Pod] = []
    for pod in snapshot.pods:
        if pod.node_name not in gone:
            staying.append(pod)
        elif pod.vmi_uid and pod.vmi_uid not in tied and (least is None or pod.priority >= least):
            waiting.append(_started_anew(pod, snapshot))
    waiting.sort(key=lambda pod: (-pod.priority, -pod.requests.get("memory", 0), pod.key))
    left = tuple(node for node in snapshot.nodes if node.name not in nodes)
    return replace(snapshot, nodes=left, pods=(*staying, *waiting)), waiting


def _started_anew(pod: Pod, snapshot: Snapshot) -> Pod:
    """Without what a migration has pinned it with; its node's name stands there for that."""
    vmi = snapshot.vmi_by_uid.get(pod.vmi_uid or "")
    own = vmi.node_selector if vmi else {}
    selector = {k: v for k, v in pod.node_selector.items() if k != HOSTNAME or k in own}
    return replace(
        pod,
        node_name=None,
        phase="Pending",
        migration_uid=None,
        node_selector=selector,
        is_terminating=False,
    )


def _helps(proposal: Proposal, loss: LossOutcome, settings: HeadroomSettings, view: View) -> bool:
    """Whether the loss is survived once the moves are done, and no other loss is worse than now."""
    now = losses(view.state, settings)
    then = losses(ClusterState(carried_out(view.snapshot, proposal.moves)), settings)
    (after,) = (each for each in then.losses if each.domain == loss.domain)
    return after.verdict is Outcome.SURVIVES and is_no_worse(now, then)


def is_no_worse(now: Failover, then: Failover) -> bool:
    """Whether no loss leaves more VMs down, or less surely none, than it did."""
    before = {loss.domain: loss for loss in now.losses}
    return all(
        len(loss.left_down) <= len(before[loss.domain].left_down)
        and (
            loss.verdict is Outcome.SURVIVES or before[loss.domain].verdict is not Outcome.SURVIVES
        )
        for loss in then.losses
    )
