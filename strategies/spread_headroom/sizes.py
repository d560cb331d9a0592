"""Goals about VMs to come: so many of each configured size can start now."""

from collections.abc import Iterator

from msgspec.structs import replace

from rebalancer.headroom.capacity import SizeCapacity
from rebalancer.model.objects import Pod
from rebalancer.model.plan import Goal, Proposal, Reason, Subject, Verdict
from rebalancer.model.quantity import format_amount
from rebalancer.planning.view import View
from rebalancer_strategies.spread_headroom.figures import capacities, vm_size
from rebalancer_strategies.spread_headroom.goals import COSTS_HEADROOM, NAME, made, migrations
from rebalancer_strategies.spread_headroom.guard import keeps_headroom
from rebalancer_strategies.spread_headroom.making_room import make_room
from rebalancer_strategies.spread_headroom.settings import HeadroomSettings, SizeSettings


def size_proposals(settings: HeadroomSettings, cluster: View) -> Iterator[Proposal]:
    """One for each size, each on what the earlier ones leave."""
    view = cluster
    for size in settings.sizes:
        proposal = _proposal(size, settings, view)
        yield proposal
        view = view.after(proposal)


def _proposal(size: SizeSettings, settings: HeadroomSettings, view: View) -> Proposal:
    (found,) = capacities([size], view)
    subject = Subject("VirtualMachineSize", "", size.name, f"size-{size.name}")
    goal = Goal(NAME, subject, Verdict.MET, figures={"fits": float(found.fits)})
    now = f"{found.fits} fit now" + (f", on {len(found.fitting_nodes)} nodes" if found.fits else "")
    if found.fits >= size.count:
        return Proposal(replace(goal, reasons=(Reason("size-fits", now),)))
    short = Reason("size-does-not-fit", f"{now}; headroom.sizes asks for {size.count}")
    if view.snapshot.migrations_in_flight:
        return Proposal(replace(goal, verdict=Verdict.WAITING, reasons=(short, migrations(view))))
    pods = _pods(size, view)
    snapshot = replace(view.snapshot, pods=(*view.snapshot.pods, *pods))
    why = (short, *_missing(found))
    proposal = made(goal, make_room(pods, replace(view, snapshot=snapshot)), why)
    if proposal.moves and not keeps_headroom(settings, view, proposal.moves):
        return Proposal(replace(goal, verdict=Verdict.UNPROVEN, reasons=(*why, COSTS_HEADROOM)))
    return proposal


def _pods(size: SizeSettings, view: View) -> list[Pod]:
    """As many as are asked for, none of which exists."""
    wanted = vm_size(size, view.snapshot.launcher_configuration)
    selector = {
        "kubevirt.io/schedulable": "true",
        **view.snapshot.launcher_configuration.node_selector,
        **size.node_selector,
    }
    return [
        Pod(
            namespace="",
            name=f"{size.name}-{number}",
            uid=f"size-{size.name}-{number}",
            requests=wanted.requests,
            phase="Pending",
            labels={"kubevirt.io": "virt-launcher"},
            node_selector=selector,
        )
        for number in range(size.count)
    ]


def _missing(found: SizeCapacity) -> Iterator[Reason]:
    if found.nearest:
        lacking = found.nearest.lacking.items()
        amounts = ", ".join(f"{name} {format_amount(lack, name)}" for name, lack in lacking)
        yield Reason("nearest-node", f"lacks {amounts} for it", node=found.nearest.node)
