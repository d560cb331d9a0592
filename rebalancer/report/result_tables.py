"""How a cycle ended, for people."""

from collections.abc import Iterable, Iterator

from rich.console import RenderableType
from rich.text import Text

from rebalancer.execution.outcome import Ending
from rebalancer.loop import CycleResult
from rebalancer.report.plan_tables import goal_lines
from rebalancer.report.rows import Rows, cell, spaced

_STYLES = {Ending.BOUND: "green", Ending.DONE: "green", Ending.GONE: "green"}


def result_tables(result: CycleResult) -> Iterator[RenderableType]:
    """Goals that were acted upon with their ends, then those left without room with the reasons."""
    return spaced(_blocks(result))


def _blocks(result: CycleResult) -> Iterator[Iterable[RenderableType]]:
    if result.outcomes:
        rows = Rows("GOAL", "ENDED", "MIGRATIONS", "WHY", right=("MIGRATIONS",))
        for outcome in result.outcomes:
            rows.add(
                cell(str(outcome.subject)),
                Text(outcome.ending, _STYLES.get(outcome.ending, "yellow")),
                Text(str(outcome.migrations)),
                cell(outcome.message),
            )
        yield [rows]
    unmet = result.unmet()
    for goal in result.plan.goals:
        if goal.subject in unmet:
            yield goal_lines(goal)
