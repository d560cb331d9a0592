"""A pool emptied node by node, each time on what the nodes before it have left.

A node that has been emptied is back, and empty, before the next one's turn. One that is cordoned or
bears a sign is taken to stay so.
"""

from collections.abc import Collection, Iterator

from msgspec import Struct
from msgspec.structs import replace

from rebalancer.drain.least_cost import least_costs
from rebalancer.drain.proposal import STUCK, Drain, left_behind, propose_drain
from rebalancer.model.plan import Move, Proposal, Reason, Verdict
from rebalancer.planning.checked import checked
from rebalancer.planning.context import PlanningContext
from rebalancer.planning.replay import carried_out
from rebalancer.planning.timetable import estimated_seconds, migration_limits
from rebalancer.planning.view import View


class Turn(Struct, frozen=True):
    """One node's."""

    node: str
    moves: tuple[Move, ...]
    estimated_seconds: float
    cost: float
    """Seconds."""
    proven: bool
    """Whether no cheaper way exists, nor one for more of its VMs."""
    left_behind: tuple[Reason, ...]
    """One for each VM that is still there at the end, or what is wrong with the plan for it."""
    warnings: tuple[Reason, ...]
    """What would make evictions of other pods hang, as things are now."""

    @property
    def is_stuck(self) -> bool:
        """Whether a person must do something before the node can be emptied."""
        return any(reason.code in STUCK for reason in self.left_behind)


class Rolling(Struct, frozen=True):
    """All turns, in the order in which the nodes are best emptied."""

    turns: tuple[Turn, ...]
    left_out: tuple[Reason, ...]
    """Nodes that have the labels asked for and were not looked at."""

    @property
    def moves(self) -> tuple[Move, ...]:
        return tuple(move for turn in self.turns for move in turn.moves)

    @property
    def stuck(self) -> tuple[Turn, ...]:
        return tuple(turn for turn in self.turns if turn.is_stuck)


def rolling_turns(names: Collection[str], cluster: View) -> Iterator[Turn]:
    """The cheapest first; those that lack room again, once others have been emptied.

    That a VM has just been moved keeps it nowhere here: upgrades take longer than any cooldown.
    """
    view = View(cluster.snapshot, _patient(cluster), cluster.second_stage)
    costs = least_costs(view)
    waiting, postponed = set(names), set[str]()
    has_changed = is_last_try = False
    while waiting or postponed:
        if not waiting:
            waiting, postponed = postponed, set()
            is_last_try, has_changed = not has_changed, False
        name = min(waiting, key=lambda each: (costs[each], each))
        waiting.remove(name)
        proposal = checked(propose_drain(Drain(name, "in turn"), {name}, view), view.snapshot)
        if _lacks_room(proposal) and not is_last_try:
            postponed.add(name)
            continue
        yield _turn(name, proposal, view)
        if proposal.moves:
            has_changed = True
            snapshot = carried_out(view.snapshot, proposal.moves)
            view = View(snapshot, view.context, view.second_stage)
            costs = least_costs(view)


def _patient(cluster: View) -> PlanningContext:
    context = cluster.context
    waits = {"cooldown_seconds": 0, "failure_backoff_seconds": 0}
    return replace(context, execution=context.execution.model_copy(update=waits))


def _lacks_room(proposal: Proposal) -> bool:
    return any(refusal.code == "no-other-node" for refusal in proposal.refused)


def _turn(name: str, proposal: Proposal, view: View) -> Turn:
    goal = proposal.goal
    limits = migration_limits(view.context.execution.budget, view.snapshot.migration_configuration)
    return Turn(
        node=name,
        moves=proposal.moves,
        estimated_seconds=estimated_seconds(proposal.moves, limits),
        cost=goal.cost or 0.0,
        proven=goal.proven or goal.verdict is Verdict.MET,
        left_behind=left_behind(goal),
        warnings=tuple(r for r in goal.reasons if r.code == "eviction-would-hang"),
    )
