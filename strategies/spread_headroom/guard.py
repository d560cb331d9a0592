"""What no moves of this strategy may cost: the headroom that there is."""

from collections.abc import Sequence

from rebalancer.headroom.failover import Failover, Verdict
from rebalancer.model.plan import Move
from rebalancer.planning.replay import carried_out
from rebalancer.planning.view import View
from rebalancer_strategies.spread_headroom.figures import capacities, losses
from rebalancer_strategies.spread_headroom.settings import FailureDomain, HeadroomSettings


def keeps_headroom(headroom: HeadroomSettings, view: View, moves: Sequence[Move]) -> bool:
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
    return _is_no_worse(losses(view.state, headroom), losses(after.state, headroom))


def _is_no_worse(now: Failover, then: Failover) -> bool:
    """Whether no loss leaves more VMs down, or less surely none, than it did."""
    before = {loss.domain: loss for loss in now.losses}
    return all(
        len(loss.left_down) <= len(before[loss.domain].left_down)
        and (
            loss.verdict is Verdict.SURVIVES or before[loss.domain].verdict is not Verdict.SURVIVES
        )
        for loss in then.losses
    )
