"""Lets Ganeti's hbal even out load, and asks it what it thinks of a placement."""

import re
import shutil
import subprocess
import tempfile

from benchmarks.measure import Measured, measure
from rebalancer.planning.problem import Moves
from rebalancer.planning.spread_problem import SpreadProblem

CPU, MEMORY = 0, 1

# group | nodes | instances | tags | policies, as ganeti-htools' text backend has them: hbal(1).
_LIMITS = "1048576,1000000,1048576,16,8,12"
_POLICY = f"128,1,0,0,1,1|128,1,0,0,1,1;{_LIMITS}|diskless,plain,drbd,rbd,ext|1.0|32.0"
_MOVE = re.compile(r"\s*\d+\.\s+vm(\d+)\s+n\d+\s+=>\s+n(\d+)\s")
_SCORE = re.compile(r"[Ii]nitial score: ([0-9.]+)")


def is_installed() -> bool:
    return shutil.which("hbal") is not None


def balance(problem: SpreadProblem, limit_seconds: float) -> Measured[Moves] | None:
    """Its plan; None if it was not done in time, before which it tells nothing.

    The load must be what is requested, and every VM must be allowed everywhere.
    """

    def run() -> Moves:
        found = _MOVE.findall(_run(problem, problem.max_moves, limit_seconds))
        return tuple((int(vm), int(node)) for vm, node in found)

    try:
        return measure(run)
    except subprocess.TimeoutExpired:
        return None


def score(problem: SpreadProblem) -> float:
    """hbal's own measure of how uneven things are."""
    found = _SCORE.search(_run(problem, 0, None))
    if found is None:
        raise ValueError("hbal printed no score")
    return float(found.group(1))


def _run(problem: SpreadProblem, max_moves: int, limit_seconds: float | None) -> str:
    """Without what it believes of load and spindles that it is not told: it would count VMs."""
    command = ["hbal", "--max-cpu=1", "--ignore-dynu", "--min-gain=0", "--min-gain-limit=0"]
    with tempfile.NamedTemporaryFile("w", suffix=".data") as file:
        file.write(_text(problem))
        file.flush()
        return subprocess.run(
            [*command, "-l", str(max_moves), "-t", file.name],
            capture_output=True,
            text=True,
            check=True,
            timeout=limit_seconds,
        ).stdout


def _text(problem: SpreadProblem) -> str:
    capacity = problem.capacity.astype(int)
    free = capacity - problem.load.astype(int)
    nodes = [
        f"n{i}|{total[MEMORY]}|0|{left[MEMORY]}|1000000|1000000|{total[CPU]}|N|g1|1"
        for i, (total, left) in enumerate(zip(capacity, free, strict=True))
    ]
    vms = [
        f"vm{i}|{size[MEMORY]}|0|{size[CPU]}|running|Y|n{node}||ext||0"
        for i, (node, size) in enumerate(
            zip(problem.mover_node, problem.mover_load.astype(int), strict=True)
        )
    ]
    sections = ["default|g1|preferred||", "\n".join(nodes), "\n".join(vms), ""]
    return "\n\n".join([*sections, f"|{_POLICY}\ndefault|{_POLICY}\n"])
