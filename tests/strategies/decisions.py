"""What is decided about a cluster, beside what should be."""

from collections.abc import Callable
from typing import NamedTuple

from rebalancer.model.plan import Plan, Verdict
from rebalancer.model.snapshot import Snapshot
from rebalancer.planner import ActiveStrategy, make_plan
from rebalancer.planning.context import PlanningContext
from rebalancer.policy.model import Mode
from rebalancer_strategies.fit_pending_vms import STRATEGY
from rebalancer_strategies.fit_pending_vms.settings import FitPendingVMsSettings


def plan_for(snapshot: Snapshot, **settings: float | None) -> Plan:
    chosen = FitPendingVMsSettings.model_validate(settings)
    active = ActiveStrategy(STRATEGY, Mode.AUTOMATIC, chosen)
    return make_plan(snapshot, [active], PlanningContext())


class Case(NamedTuple):
    """A cluster, the verdicts by VM, the moves, and words that the plan must say."""

    snapshot: Callable[[], Snapshot]
    verdicts: dict[str, Verdict]
    moves: str = ""
    says: tuple[str, ...] = ()


def assert_decided(case: Case) -> None:
    plan = plan_for(case.snapshot())
    assert {goal.subject.name: goal.verdict for goal in plan.goals} == case.verdicts
    moves = sorted(f"{move.vmi.name}->{move.target}" for move in plan.moves)
    assert moves == sorted(case.moves.split())
    said = [f"{goal.subject}: {'proven' if goal.proven else ''}" for goal in plan.goals]
    said += [reason.message for goal in plan.goals for reason in goal.reasons]
    said += [f"{refusal.vmi}: {refusal.message}" for refusal in plan.refused]
    for words in case.says:
        assert any(words in text for text in said), said
