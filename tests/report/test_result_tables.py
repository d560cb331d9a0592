"""A cycle's end as a person sees it."""

from rebalancer.execution.outcome import Ending, GoalOutcome
from rebalancer.loop import CycleResult
from rebalancer.model.plan import Goal
from rebalancer.report.result_tables import result_tables
from tests.report.rendering import piped
from tests.report.samples import empty, fits, impossible, one_move, several_goals


def ended(goal: Goal, ending: Ending, message: str, migrations: int) -> GoalOutcome:
    return GoalOutcome(goal.subject, ending, message, migrations)


def test_goals_that_were_reached_are_told_with_their_migrations() -> None:
    plan = one_move().plan
    outcome = ended(plan.goals[0], Ending.BOUND, "is bound to worker-1", 1)
    assert piped(result_tables(CycleResult(plan, (outcome,)))) == (
        "GOAL         ENDED  MIGRATIONS  WHY\n"
        "default/big  bound           1  is bound to worker-1\n"
    )


def test_goals_left_without_room_are_told_with_all_reasons() -> None:
    plan = several_goals().plan
    first, second, _ = plan.goals
    outcomes = (
        ended(first, Ending.BOUND, "is bound to worker-1", 1),
        ended(second, Ending.DROPPED, "VM default/b is gone", 0),
    )
    assert piped(result_tables(CycleResult(plan, outcomes))) == (
        "GOAL            ENDED    MIGRATIONS  WHY\n"
        "default/first   bound             1  is bound to worker-1\n"
        "default/second  dropped           0  VM default/b is gone\n"
        "\n"
        "FitPendingVMs default/second: planned on worker-2, cost 42.0 s (proven cheapest)\n"
        "\n"
        "FitPendingVMs default/third: waiting\n"
        "  more important VMs come first; it is planned anew after them\n"
    )


def test_impossible_goal_is_told_with_its_certificate() -> None:
    text = piped(result_tables(CycleResult(impossible().plan)))
    assert text.startswith(
        "FitPendingVMs default/big: impossible\n"
        "  memory: needs 17408 MiB, the largest eligible node has 16384 MiB\n"
    )


def test_nothing_is_said_when_nothing_is_left_to_do() -> None:
    assert piped(result_tables(CycleResult(empty().plan))) == ""
    assert piped(result_tables(CycleResult(fits().plan))) == ""
