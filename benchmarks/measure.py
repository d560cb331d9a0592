"""Time and memory of one call, calls that are stopped, and calls in a process of their own."""

import multiprocessing
import resource
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from benchmarks.replay import replay
from rebalancer.planning.fit import solve_fit
from rebalancer.planning.isolation import IsolatedSearch
from rebalancer.planning.problem import FitProblem, Outcome
from rebalancer.policy.model import PlanningPolicy

T = TypeVar("T")

_POLL_SECONDS = 0.02


class Measured(NamedTuple, Generic[T]):
    """What a call gave and took."""

    value: T
    seconds: float
    core_seconds: float
    """Time on a core, of this process and of those it started and waited for: what the call takes
    where nothing else runs. The time that passed is longer the more others use the machine."""

    peak_bytes: int
    """Resident memory of the whole process at its peak during the call."""


def measure(call: Callable[[], T]) -> Measured[T]:
    """Runs it here. Linux only, for the memory."""
    # 5 resets the peak of the resident memory. Source: proc(5), /proc/pid/clear_refs.
    Path("/proc/self/clear_refs").write_text("5")
    start, core_start = time.perf_counter(), _core_seconds()
    value = call()
    seconds, core_seconds = time.perf_counter() - start, _core_seconds() - core_start
    return Measured(value, seconds, core_seconds, _peak_resident_bytes())


def measure_planner(problem: FitProblem, deadline_seconds: float) -> Measured[Outcome]:
    """As the rebalancer runs it, the process of the second stage included.

    Raises: NotExecutableError, if the plan cannot be carried out.
    """
    policy = PlanningPolicy(deadline_seconds=deadline_seconds)
    measured = measure(lambda: solve_fit(problem, IsolatedSearch(policy)))
    solution = measured.value.solution
    if solution is not None:
        replay(problem, solution.moves, solution.node)
    return measured


def _core_seconds() -> float:
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def _peak_resident_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise LookupError("/proc/self/status has no VmHWM")


@contextmanager
def stopped_after(core_seconds: float, stop: Callable[[], object]) -> Iterator[None]:
    """Calls `stop` from another thread once this process has taken so much of a core's time."""
    end = time.process_time() + core_seconds
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(_POLL_SECONDS):
            if time.process_time() >= end:
                stop()
                return

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def in_process(limit_seconds: float, function: Callable[..., T], *arguments: object) -> T | None:
    """What the function returns in a process of its own; None if it had to be killed.

    The function and its arguments must be picklable.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(sender, function, arguments))
    process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(limit_seconds) else None
    except EOFError:
        raise RuntimeError(f"{function.__name__} ended without a result, see above") from None
    finally:
        process.kill()
        process.join()


def _send(sender: Connection, function: Callable[..., T], arguments: tuple[object, ...]) -> None:
    sender.send(function(*arguments))
