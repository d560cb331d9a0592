"""Several Pending VMs: as many of the most important ones as possible, then the cheapest way.

VMs of one priority are planned for in turn, by age, each beside those before it. That can let a
small VM take the one hole that a large one needs. So VMs that only the others leave no room for are
tried at the front, and an order that fits more of them, or as many at a lower cost, is kept.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from msgspec.structs import replace

from rebalancer.model.objects import Pod
from rebalancer.model.plan import Goal, Proposal, Reason, Verdict
from rebalancer.model.snapshot import Snapshot
from rebalancer.planning.view import View
from rebalancer_strategies.fit_pending_vms.settings import FitPendingVMsSettings
from rebalancer_strategies.fit_pending_vms.single import Draft, propose_one

_MAX_ORDERS = 8
"""Orders of one priority's VMs that are tried besides that by age. Each costs as much as the first,
so that a queue of hundreds is planned for in seconds still."""

_WITHOUT_ROOM = {Verdict.IMPOSSIBLE, Verdict.NOT_WORTH_IT, Verdict.UNPROVEN}


class Attempt(NamedTuple):
    """One order of VMs of one priority, and what comes of it."""

    pods: tuple[Pod, ...]
    drafts: tuple[Draft, ...]
    left_out: tuple[Pod, ...]
    """Those that only others leave no room for."""
    view: View
    """What the goals after them see."""

    @property
    def rank(self) -> tuple[int, float]:
        """Smaller is better: fewer without a place, then what the migrations cost."""
        goals = [draft.proposal.goal for draft in self.drafts]
        fitted = sum(goal.verdict in {Verdict.PLANNED, Verdict.FITS} for goal in goals)
        return -fitted, sum(goal.cost or 0.0 for goal in goals)


def propose_all(
    pods: Sequence[Pod], cluster: View, settings: FitPendingVMsSettings
) -> Iterator[Proposal]:
    """One proposal for each pod; `pods` are in the order of their importance."""
    view = cluster
    for _, equals in groupby(pods, key=lambda pod: pod.priority):
        attempt = _best_order(tuple(equals), _Turn(cluster, view, settings))
        yield from (draft.in_full() for draft in attempt.drafts)
        view = attempt.view


class _Turn(NamedTuple):
    """What the VMs of one priority come upon."""

    cluster: View
    """As it is."""
    before: View
    """With the plans for more important VMs carried out."""
    settings: FitPendingVMsSettings


def _best_order(pods: tuple[Pod, ...], turn: _Turn) -> Attempt:
    best = _in_order(pods, turn)
    for pod in _worth_a_try(best)[:_MAX_ORDERS]:
        others = tuple(other for other in best.pods if other is not pod)
        attempt = _in_order((pod, *others), turn)
        if attempt.rank < best.rank:
            best = attempt
    return best


def _worth_a_try(attempt: Attempt) -> list[Pod]:
    """Of those left out, one of each kind.

    Where one of the others is of the same kind, trading places with it would change nothing.
    """
    needs = attempt.view.needs
    seen = {needs(pod) for pod in attempt.pods if pod not in attempt.left_out}
    found = []
    for pod in attempt.left_out:
        if needs(pod) not in seen:
            seen.add(needs(pod))
            found.append(pod)
    return found


def _in_order(pods: tuple[Pod, ...], turn: _Turn) -> Attempt:
    view = turn.before
    drafts, left_out = [], []
    for pod in pods:
        draft = propose_one(pod, view, turn.settings)
        if view is not turn.cluster and draft.proposal.goal.verdict in _WITHOUT_ROOM:
            draft = propose_one(pod, turn.cluster, turn.settings)
            if draft.proposal.goal.verdict is Verdict.PLANNED:
                draft = Draft(_behind_others(draft.proposal.goal))
                left_out.append(pod)
        if pod.migration_uid:
            proposal = _for_migration(draft.proposal, pod, view.snapshot)
            draft = draft._replace(proposal=proposal)
        drafts.append(draft)
        view = view.after(draft.proposal)
    return Attempt(pods, tuple(drafts), tuple(left_out), view)


def _for_migration(proposal: Proposal, pod: Pod, snapshot: Snapshot) -> Proposal:
    """The goal ends with the migration, which gives up in time and takes its target pod with it."""
    migration = next(each for each in snapshot.migrations if each.uid == pod.migration_uid)
    name = f"{migration.namespace}/{migration.name}"
    reason = Reason("target-pod", f"the target pod of migration {name} has no node", object=name)
    goal = proposal.goal
    goal = replace(goal, reasons=(reason, *goal.reasons), migration_uid=migration.uid)
    return replace(proposal, goal=goal)


def _behind_others(alone: Goal) -> Proposal:
    reason = Reason("behind-others", "VMs before it take the room; it is planned anew after them")
    return Proposal(Goal(alone.strategy, alone.subject, Verdict.WAITING, reasons=(reason,)))
