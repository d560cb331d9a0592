"""Headroom first, then balance, which never takes from it."""

from collections.abc import Iterator, Sequence

from rebalancer.model.plan import Move, Proposal
from rebalancer.model.snapshot import Snapshot
from rebalancer.planning.context import PlanningContext
from rebalancer.planning.isolation import IsolatedSearch
from rebalancer.planning.replay import carried_out
from rebalancer.planning.view import View
from rebalancer.policy.model import Section
from rebalancer.policy.root import RebalancerPolicy
from rebalancer_strategies.spread_headroom.balance import balance_proposal
from rebalancer_strategies.spread_headroom.goals import NAME
from rebalancer_strategies.spread_headroom.losses import is_no_worse, loss_proposals, losses
from rebalancer_strategies.spread_headroom.settings import (
    Basis,
    FailureDomain,
    HeadroomSettings,
    SpreadHeadroomSettings,
)
from rebalancer_strategies.spread_headroom.sizes import capacities, size_proposals

__all__ = ["NAME", "contradictions", "propose"]


def propose(snapshot: Snapshot, settings: Section, context: PlanningContext) -> Sequence[Proposal]:
    """Goals about sizes, about losses, and about balance, in this order."""
    assert isinstance(settings, SpreadHeadroomSettings)
    return tuple(_proposals(settings, View(snapshot, context, IsolatedSearch(context.planning))))


def _proposals(settings: SpreadHeadroomSettings, cluster: View) -> Iterator[Proposal]:
    view = cluster
    for proposal in size_proposals(settings.headroom.sizes, view):
        yield proposal
        view = view.after(proposal)
    for proposal in loss_proposals(settings.headroom, view):
        yield proposal
        view = view.after(proposal)
    if settings.balance.by is not Basis.NONE:

        def keeps_headroom(moves: Sequence[Move]) -> bool:
            return _is_no_worse(settings.headroom, view, moves)

        yield balance_proposal(settings.balance, view, keeps_headroom)


def _is_no_worse(headroom: HeadroomSettings, view: View, moves: Sequence[Move]) -> bool:
    """Whether, with these moves made, as many VMs survive each loss and as many sizes fit."""
    after = View(carried_out(view.snapshot, moves), view.context, view.second_stage)
    sizes = zip(
        headroom.sizes,
        capacities(headroom.sizes, view),
        capacities(headroom.sizes, after),
        strict=True,
    )
    if any(then.fits < min(now.fits, size.count) for size, now, then in sizes):
        return False
    if headroom.failure_domain is FailureDomain.NONE:
        return True
    return is_no_worse(losses(view.state, headroom), losses(after.state, headroom))


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
