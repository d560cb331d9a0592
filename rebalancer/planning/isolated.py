"""The process that runs the second stage: a job comes on stdin, reports go to stdout."""

import os
import pickle
import sys
from contextlib import suppress
from ctypes import CDLL
from threading import Thread
from typing import IO

from rebalancer.planning.flow import search_flows
from rebalancer.planning.job import OUT_OF_MEMORY, Job, Report


def main() -> None:
    job: Job = pickle.load(sys.stdin.buffer)
    Thread(target=_end_with_parent, daemon=True).start()
    # Whatever a library prints must not get between the reports.
    reports = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    _limit_memory(job.memory_mebibytes)
    try:
        _work(job, reports)
    except MemoryError:
        os._exit(OUT_OF_MEMORY)


def _work(job: Job, reports: IO[bytes]) -> None:
    last = Report(job.known, 0.0, is_last=False)
    for outcome, work in search_flows(job.problem, job.known, job.work_limit):
        last = Report(outcome, work, is_last=False)
        _send(last, reports)
    _send(last._replace(is_last=True), reports)


def _send(report: Report, reports: IO[bytes]) -> None:
    pickle.dump(report, reports)
    reports.flush()


def _end_with_parent() -> None:
    """Nothing more is sent, so the read returns when the other end is closed, by death as well."""
    os.read(sys.stdin.fileno(), 1)
    os._exit(1)


def _limit_memory(mebibytes: int) -> None:
    """That much more address space than now, when all libraries are loaded.

    Linux only: macOS does not keep such a limit.
    """
    if sys.platform != "linux":
        return
    import resource
    from pathlib import Path

    # glibc loads it when a thread first ends early, which for want of memory would be too late.
    with suppress(OSError):
        CDLL("libgcc_s.so.1")
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + mebibytes * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


if __name__ == "__main__":
    main()
