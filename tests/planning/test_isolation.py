"""The second stage in its own process, which the clock, memory, a crash or our death may end."""

import pickle
import subprocess
import sys

import pytest

from rebalancer.planning.flow import OUT_OF_WORK, solve_flow
from rebalancer.planning.isolation import COMMAND, IsolatedSearch
from rebalancer.planning.job import Job, Report
from rebalancer.planning.problem import Outcome
from rebalancer.planning.search import search_direct
from rebalancer.policy.model import PlanningPolicy
from tests.planning.hard_problems import full_cluster

PROBLEM = full_cluster(seed=8, nodes=6, holes=0.05)
LARGE = full_cluster(seed=5, nodes=16, holes=0.05)


def _python(script: str) -> tuple[str, ...]:
    return sys.executable, "-c", script


def test_the_process_finds_what_the_search_finds_here() -> None:
    known = search_direct(PROBLEM)
    outcome = IsolatedSearch(PlanningPolicy())(PROBLEM, known)
    assert outcome == solve_flow(PROBLEM, known, work_limit=2)
    assert outcome.is_proven


def test_equal_problems_get_equal_plans() -> None:
    known = search_direct(LARGE)
    assert solve_flow(LARGE, known, work_limit=1) == solve_flow(LARGE, known, work_limit=1)


def test_a_search_with_hardly_any_work_left_says_so() -> None:
    known = search_direct(LARGE)
    outcome = solve_flow(LARGE, known, work_limit=1e-3)
    assert outcome.gave_up_because == OUT_OF_WORK


def test_past_the_deadline_the_process_is_stopped() -> None:
    known = search_direct(PROBLEM)
    # Not even Python starts in this time.
    outcome = IsolatedSearch(PlanningPolicy(deadline_seconds=1e-3))(PROBLEM, known)
    why = "planning.deadlineSeconds (0.001) had passed"
    assert outcome == known._replace(gave_up_because=why)


def test_only_the_solvers_own_time_counts_towards_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Two searches of six seconds each, with an hour of other work between them.
    clock = iter((0, 6, 3600, 3606))
    monkeypatch.setattr("rebalancer.planning.isolation.monotonic", lambda: next(clock))
    search = IsolatedSearch(PlanningPolicy(deadline_seconds=11), _python("pass"))
    known = search_direct(PROBLEM)
    ended = known._replace(gave_up_because="the solver ended with exit code 0: it said nothing")
    assert search(PROBLEM, known) == ended
    assert search(PROBLEM, known) == ended
    why = "planning.deadlineSeconds (11) had passed"
    assert search(PROBLEM, known) == known._replace(gave_up_because=why)


def test_what_was_found_until_the_process_was_stopped_is_kept() -> None:
    better = Outcome(None, 123.0)
    report = pickle.dumps(Report(better, work=0.1, is_last=False))
    command = _python(f"import os; os.write(1, {report!r}); os.close(1); os.abort()")
    outcome = IsolatedSearch(PlanningPolicy(), command)(PROBLEM, Outcome(None, 7.0))
    assert outcome.bound == 123
    assert outcome.gave_up_because == "the solver ended with signal SIGABRT: it said nothing"


def test_a_process_that_needs_too_much_memory_is_stopped() -> None:
    known = search_direct(LARGE)
    planning = PlanningPolicy.model_construct(deadline_seconds=60, solver_memory_mebibytes=0)
    outcome = IsolatedSearch(planning)(LARGE, known)
    assert outcome.gave_up_because == "the solver was stopped: it used more than 0 MiB"


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("1 / 0", "the solver ended with exit code 1: ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "the solver ended with exit code 3: it said nothing"),
        (
            "import os; os.kill(os.getpid(), 9)",
            "the solver was killed, by the system's lack of memory most likely",
        ),
        (
            "import os; os.write(2, b'terminate called: std::bad_alloc'); os.abort()",
            "the solver was stopped: it used more than 512 MiB",
        ),
    ],
)
def test_a_process_that_dies_leaves_the_first_stage_and_a_reason(script: str, why: str) -> None:
    known = search_direct(PROBLEM)
    outcome = IsolatedSearch(PlanningPolicy(), _python(script))(PROBLEM, known)
    assert outcome == known._replace(gave_up_because=why)


def test_the_process_ends_with_its_parent() -> None:
    """A dead parent is a closed stdin; the job alone would keep it busy for hours."""
    known = search_direct(LARGE)
    job = Job(LARGE, known._replace(bound=0.0), work_limit=1e6, memory_mebibytes=512)
    process = subprocess.Popen(
        COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    process.communicate(pickle.dumps(job))
    assert process.returncode == 1
