"""The second stage in a process of its own, which can be stopped whatever the solver does."""

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Timer
from time import monotonic
from typing import IO

from rebalancer.planning.job import OUT_OF_MEMORY, Job, Report
from rebalancer.planning.problem import FitProblem, Outcome
from rebalancer.policy.model import PlanningPolicy

COMMAND = (sys.executable, "-P", "-m", "rebalancer.planning.isolated")
"""-P: nothing is imported from the working directory, which may be anybody's."""

WORK_PER_SECOND = 0.2
"""Of the solver's work. CP-SAT took 2.5 to 4 seconds of one core for one unit of its deterministic
time on the problems of docs/decisions/solver.md, so that the work ends some way before the deadline
does, and equal problems get equal outcomes.
"""

_SHARE = 0.5
"""Of the work that is left, what one goal may use up: the first, more important goals get more, and
none gets all."""


class IsolatedSearch:
    """A second stage for all goals of one plan, which share the policy's deadline: what they take
    outside of it does not count, so that large clusters have as much of it as small ones.

    Ends by its work in nearly all cases; the clock stops it only on a machine that is much slower
    or busier than expected. What had been found by then is kept.
    """

    def __init__(self, planning: PlanningPolicy, command: Sequence[str] = COMMAND) -> None:
        self._planning = planning
        self._command = command
        self._work_left = planning.deadline_seconds * WORK_PER_SECOND
        self._seconds_left = planning.deadline_seconds

    def __call__(self, problem: FitProblem, known: Outcome) -> Outcome:
        work_limit = self._work_left * _SHARE
        job = Job(problem, known, work_limit, self._planning.solver_memory_mebibytes)
        if self._seconds_left <= 0:
            return known._replace(gave_up_because=self._deadline_passed())
        start = monotonic()
        last, why = self._run(job, self._seconds_left)
        self._seconds_left -= monotonic() - start
        # What the work of a process that was stopped came to is not known.
        self._work_left -= last.work if last.is_last else work_limit
        return last.outcome if last.is_last else last.outcome._replace(gave_up_because=why)

    def _run(self, job: Job, seconds: float) -> tuple[Report, str]:
        """The last report, and, where it is not the end, why no more came."""
        last = Report(job.known, 0.0, is_last=False)
        is_late = Event()
        with _started(self._command) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stderr is not None

            def stop() -> None:
                is_late.set()
                process.kill()

            timer = Timer(seconds, stop)
            timer.daemon = True
            timer.start()
            try:
                for report in _converse(process.stdin, process.stdout, job):
                    last = report
                words = process.stderr.read().decode(errors="replace")
            finally:
                timer.cancel()
                process.kill()
                with suppress(BrokenPipeError):
                    process.stdin.close()
        if is_late.is_set():
            return last, self._deadline_passed()
        return last, self._told_by(process.returncode, words)

    def _deadline_passed(self) -> str:
        return f"planning.deadlineSeconds ({self._planning.deadline_seconds:g}) had passed"

    def _told_by(self, code: int, words: str) -> str:
        if code == OUT_OF_MEMORY or "bad_alloc" in words or "MemoryError" in words:
            limit = self._planning.solver_memory_mebibytes
            return f"the solver was stopped: it used more than {limit} MiB"
        if code == -signal.SIGKILL:
            return "the solver was killed, by the system's lack of memory most likely"
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        said = words.strip().splitlines()[-1:] or ["it said nothing"]
        return f"the solver ended with {how}: {said[0]}"


def _started(command: Sequence[str]) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(str(Path(path).absolute()) for path in sys.path),
        # Threads that nothing here needs would take address space, which is limited.
        "OPENBLAS_NUM_THREADS": "1",
    }
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment)


def _converse(sink: IO[bytes], source: IO[bytes], job: Job) -> Iterator[Report]:
    """Ends when the process does. It ends itself when the sink is closed, as by our death."""
    with suppress(BrokenPipeError, EOFError, pickle.UnpicklingError):
        pickle.dump(job, sink)
        sink.flush()
        while True:
            yield pickle.load(source)
