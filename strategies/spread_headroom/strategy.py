"""Headroom first, then balance, which never takes from it."""

from collections.abc import Iterator, Sequence
from functools import partial

from rebalancer.model.plan import Proposal
from rebalancer.model.snapshot import Snapshot
from rebalancer.planning.context import PlanningContext
from rebalancer.planning.isolation import IsolatedSearch
from rebalancer.planning.view import View
from rebalancer.policy.model import Section
from rebalancer.policy.root import RebalancerPolicy
from rebalancer_strategies.spread_headroom.balance import balance_proposal
from rebalancer_strategies.spread_headroom.guard import keeps_headroom
from rebalancer_strategies.spread_headroom.losses import loss_proposals
from rebalancer_strategies.spread_headroom.settings import Basis, SpreadHeadroomSettings
from rebalancer_strategies.spread_headroom.sizes import size_proposals


def propose(snapshot: Snapshot, settings: Section, context: PlanningContext) -> Sequence[Proposal]:
    """Goals about sizes, about losses, and about balance, in this order."""
    assert isinstance(settings, SpreadHeadroomSettings)
    return tuple(_proposals(settings, View(snapshot, context, IsolatedSearch(context.planning))))


def _proposals(settings: SpreadHeadroomSettings, cluster: View) -> Iterator[Proposal]:
    view = cluster
    for proposal in size_proposals(settings.headroom, view):
        yield proposal
        view = view.after(proposal)
    for proposal in loss_proposals(settings.headroom, view):
        yield proposal
        view = view.after(proposal)
    if settings.balance.by is not Basis.NONE:
        is_allowed = partial(keeps_headroom, settings.headroom, view)
        yield balance_proposal(settings.balance, view, is_allowed)


def contradictions(settings: Section, policy: RebalancerPolicy) -> Sequence[str]:
    assert isinstance(settings, SpreadHeadroomSettings)
    balance = settings.balance
    found = []
    if balance.by is Basis.MEASURED_LOAD and policy.prometheus.url is None:
        found.append("balance.by MeasuredLoad needs prometheus.url")
    if balance.by is not Basis.NONE and policy.execution.cooldown_seconds == 0:
        found.append(
            "balance moves VMs for no one's need; it must not go with execution.cooldownSeconds 0,"
            " which lets it move one again and again"
        )
    return found
