"""What becomes of a proposal once the checker has judged it."""

from collections.abc import Sequence

from msgspec.structs import replace

from rebalancer.model.plan import Move, Proposal, Reason, Verdict
from rebalancer.model.snapshot import Snapshot
from rebalancer.planning import checker


def checked(proposal: Proposal, snapshot: Snapshot) -> Proposal:
    """The proposal itself, or without its moves where carrying them out would break a rule.

    Moves that only break one where they overlap are made one after the other.
    """
    broken = _broken_rules(proposal, snapshot)
    if not broken:
        return proposal
    in_turn = replace(proposal, moves=_in_turn(proposal.moves))
    if not _broken_rules(in_turn, snapshot):
        return in_turn
    goal = replace(
        proposal.goal,
        verdict=Verdict.UNPROVEN,
        reasons=tuple(Reason("plan-rejected", text) for text in broken),
        node="",
        cost=None,
        proven=False,
        move_ids=(),
    )
    return Proposal(goal, refused=proposal.refused)


def _in_turn(moves: Sequence[Move]) -> tuple[Move, ...]:
    """Each waiting for the one before it as well."""
    return tuple(
        replace(move, after=tuple(dict.fromkeys((*move.after, previous.id)))) if previous else move
        for previous, move in zip((None, *moves), moves, strict=False)
    )


def _broken_rules(proposal: Proposal, snapshot: Snapshot) -> list[str]:
    goal, moves = proposal.goal, proposal.moves
    if goal.verdict is Verdict.PLANNED:
        return checker.violations(snapshot, [goal], moves)
    return [f"a goal that is {goal.verdict} cannot have moves"] if moves else []
