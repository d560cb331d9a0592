"""What the goals of this strategy have in common."""

from msgspec.structs import replace

from rebalancer.model.plan import Goal, Proposal, Reason, Verdict
from rebalancer.model.wording import count_of
from rebalancer.planning.view import View
from rebalancer_strategies.spread_headroom.making_room import MadeRoom

NAME = "SpreadHeadroom"

COSTS_HEADROOM = Reason("no-plan", "the migrations that were found would cost other headroom")


def migrations(view: View) -> Reason:
    """Why nothing is judged now: VMs that are on their way hold room on two nodes."""
    count = len(view.snapshot.migrations_in_flight)
    return Reason("migrations-under-way", f"judged anew once {count} migrations have ended")


def made(goal: Goal, room: MadeRoom, why: tuple[Reason, ...]) -> Proposal:
    """The proposal that makes the room; all of it or nothing."""
    if room.without:
        verdict = Verdict.IMPOSSIBLE if room.is_impossible else Verdict.UNPROVEN
        no_plan = Reason("no-plan", "no migrations that would make the room were found")
        reasons = (*why, no_plan)
        return Proposal(replace(goal, verdict=verdict, proven=room.is_impossible, reasons=reasons))
    count = count_of(len(room.moves), "migration")
    makes = Reason("makes-room", f"{count} would make the room")
    return Proposal(
        replace(
            goal,
            verdict=Verdict.PLANNED,
            reasons=(*why, makes),
            cost=room.cost_seconds,
            bound=room.cost_seconds if room.is_proven else None,
            proven=room.is_proven,
            move_ids=tuple(move.id for move in room.moves),
        ),
        room.moves,
    )
