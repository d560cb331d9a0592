"""What Prometheus is shown of cycles."""

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from rebalancer.execution.outcome import Ending, GoalOutcome
from rebalancer.loop import CycleResult
from rebalancer.model.plan import Goal, Plan, Subject, Verdict
from rebalancer.telemetry.metrics import CycleEnd, CycleMetrics

HOSTILE = 'w9"} 1\n\\x{\x1b[31m\u2603'


def shown(metrics: CycleMetrics) -> dict[tuple[str, ...], float]:
    """Name and label values, those in the order of the labels' names, to each sample's value."""
    registry = CollectorRegistry()
    registry.register(metrics)
    text = generate_latest(registry).decode()
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def goal(name: str = "large", verdict: Verdict = Verdict.MET, **figures: float) -> Goal:
    subject = Subject("VirtualMachineSize", "", name, "size-large")
    return Goal("SpreadHeadroom", subject, verdict, figures=figures)


def test_figures_of_the_last_cycle_are_shown_by_goal() -> None:
    metrics = CycleMetrics()
    metrics.done(CycleResult(Plan("p", (goal(fits=3.0),))), 60.0)
    metrics.done(CycleResult(Plan("p", (goal(fits=2.0),))), 120.0)
    found = shown(metrics)
    figure = ("rebalancer_goal_figure", "fits", "VirtualMachineSize", "SpreadHeadroom", "large")
    assert found[figure] == 2
    assert found["rebalancer_last_cycle_timestamp_seconds",] == 120
    assert found["rebalancer_goals", "SpreadHeadroom", "met"] == 1


def test_cycles_and_migrations_are_counted_by_how_they_ended() -> None:
    metrics = CycleMetrics()
    planned = goal(verdict=Verdict.PLANNED)
    outcome = GoalOutcome(planned.subject, Ending.DONE, "", migrations=2)
    metrics.done(CycleResult(Plan("p", (planned,)), (outcome,)), 0.0)
    metrics.ended(CycleEnd.FAILED)
    found = shown(metrics)
    assert found["rebalancer_cycles_total", "done"] == 1
    assert found["rebalancer_cycles_total", "failed"] == 1
    assert found["rebalancer_migrations_total", "done"] == 2
    assert found["rebalancer_unmet_goals",] == 0


def test_names_of_any_kind_come_through_unharmed() -> None:
    metrics = CycleMetrics()
    metrics.done(CycleResult(Plan("p", (goal(HOSTILE, fits=1.0),))), 0.0)
    names = {labels[4] for labels in shown(metrics) if labels[0] == "rebalancer_goal_figure"}
    assert names == {HOSTILE}
