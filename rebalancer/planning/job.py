"""What goes to and comes from the process of the second stage.

Apart from both ends, since that process imports nothing that it does not need: until it has started
no work is done.
"""

from typing import NamedTuple

from rebalancer.planning.problem import FitProblem, Outcome

OUT_OF_MEMORY = 77
"""Exit code; any that neither Python nor a shell uses."""


class Job(NamedTuple):
    """What the process is sent."""

    problem: FitProblem
    known: Outcome
    work_limit: float
    memory_mebibytes: int


class Report(NamedTuple):
    """What it sends, again and again: all that it knows by then."""

    outcome: Outcome
    work: float
    is_last: bool
