"""Goals about VMs to come: so many of each configured size can start now."""

from collections.abc import Iterator

from msgspec.structs import replace

from rebalancer.headroom.capacity import SizeCapacity, launcher_of
from rebalancer.model.plan import Goal, Proposal, Reason, Subject, Verdict
from rebalancer.model.quantity import format_amount
from rebalancer_strategies.spread_headroom.goals import COSTS_HEADROOM, NAME, made, migrations
from rebalancer_strategies.spread_headroom.headroom import Headroom
from rebalancer_strategies.spread_headroom.making_room import make_room


def size_proposal(number: int, headroom: Headroom) -> Proposal:
    """For the configured size of that number."""
    view, size, found = headroom.view, headroom.settings.sizes[number], headroom.capacities[number]
    subject = Subject("VirtualMachineSize", "", size.name, f"size-{size.name}")
    goal = Goal(NAME, subject, Verdict.MET, figures={"fits": float(found.fits)})
    now = f"{found.fits} fit now" + (f", on {len(found.fitting_nodes)} nodes" if found.fits else "")
    if found.fits >= size.count:
        return Proposal(replace(goal, reasons=(Reason("size-fits", now),)))
    short = Reason("size-does-not-fit", f"{now}; headroom.sizes asks for {size.count}")
    if view.snapshot.migrations_in_flight:
        return Proposal(replace(goal, verdict=Verdict.WAITING, reasons=(short, migrations(view))))
    # As many as are asked for, none of which exists.
    pods = [
        launcher_of(headroom.sizes[number], view.snapshot, f"{size.name}-{count}")
        for count in range(size.count)
    ]
    snapshot = replace(view.snapshot, pods=(*view.snapshot.pods, *pods))
    why = (short, *_missing(found))
    proposal = made(goal, make_room(pods, replace(view, snapshot=snapshot)), why)
    if proposal.moves and not headroom.is_kept_by(proposal.moves):
        return Proposal(replace(goal, verdict=Verdict.UNPROVEN, reasons=(*why, COSTS_HEADROOM)))
    return proposal


def _missing(found: SizeCapacity) -> Iterator[Reason]:
    if found.nearest:
        lacking = found.nearest.lacking.items()
        amounts = ", ".join(f"{name} {format_amount(lack, name)}" for name, lack in lacking)
        yield Reason("nearest-node", f"lacks {amounts} for it", node=found.nearest.node)
