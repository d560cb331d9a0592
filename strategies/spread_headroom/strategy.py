"""Headroom first, then balance, which never takes from it."""

from collections.abc import Iterator, Sequence

from rebalancer.model.plan import Proposal
from rebalancer.planning.view import View
from rebalancer.policy.model import Section
from rebalancer.policy.root import RebalancerPolicy
from rebalancer_strategies.spread_headroom.balance import balance_proposal
from rebalancer_strategies.spread_headroom.headroom import Headroom
from rebalancer_strategies.spread_headroom.losses import loss_proposals
from rebalancer_strategies.spread_headroom.settings import Basis, SpreadHeadroomSettings
from rebalancer_strategies.spread_headroom.sizes import size_proposal


def propose(view: View, settings: Section) -> Sequence[Proposal]:
    """Goals about sizes, about losses, and about balance, in this order."""
    assert isinstance(settings, SpreadHeadroomSettings)
    headroom = Headroom(settings.headroom, view)
    return tuple(_proposals(settings, headroom))


def _proposals(settings: SpreadHeadroomSettings, headroom: Headroom) -> Iterator[Proposal]:
    for number in range(len(headroom.sizes)):
        proposal = size_proposal(number, headroom)
        yield proposal
        headroom = headroom.left_by(proposal)
    for proposal in loss_proposals(headroom):
        yield proposal
        headroom = headroom.left_by(proposal)
    if settings.balance.by is not Basis.NONE:
        yield balance_proposal(settings.balance, headroom)


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
