"""What is decided about a cluster, beside what should be."""

from collections.abc import Callable
from typing import NamedTuple

from rebalancer.model.plan import Plan, Verdict
from rebalancer.model.snapshot import Snapshot
from rebalancer.planner import ActiveStrategy, make_plan
from rebalancer.planning.context import PlanningContext
from rebalancer.policy.model import Mode
from rebalancer.strategy import Strategy
from rebalancer_strategies.consolidate_for_drain import STRATEGY as DRAIN
from rebalancer_strategies.fit_pending_vms import STRATEGY as FIT_PENDING


def plan_for(snapshot: Snapshot, **settings: float | None) -> Plan:
    return make_plan(snapshot, [automatic(FIT_PENDING, **settings)], PlanningContext())


def drain_plan(snapshot: Snapshot, **settings: object) -> Plan:
    return make_plan(snapshot, [automatic(DRAIN, **settings)], PlanningContext())


def automatic(strategy: Strategy, **settings: object) -> ActiveStrategy:
    chosen = strategy.settings_type.model_validate(settings)
    return ActiveStrategy(strategy, Mode.AUTOMATIC, chosen)


class Case(NamedTuple):
    """A cluster, the verdicts by VM, the moves, and words that the plan must say."""

    snapshot: Callable[[], Snapshot]
    verdicts: dict[str, Verdict]
    moves: str = ""
    says: tuple[str, ...] = ()


def assert_decided(case: Case, plan_of: Callable[[Snapshot], Plan] = plan_for) -> None:
    plan = plan_of(case.snapshot())
    assert {goal.subject.name: goal.verdict for goal in plan.goals} == case.verdicts
    moves = sorted(f"{move.vmi.name}->{move.target}" for move in plan.moves)
    assert moves == sorted(case.moves.split())
    said = [f"{goal.subject}: {'proven' if goal.proven else ''}" for goal in plan.goals]
    said += [reason.message for goal in plan.goals for reason in goal.reasons]
    said += [f"{refusal.vmi}: {refusal.message}" for refusal in plan.refused]
    for words in case.says:
        assert any(words in text for text in said), said
