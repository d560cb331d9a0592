"""What the benchmarks print: Markdown, with the machine it was measured on."""

import math
import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path


def machine() -> str:
    """One line that figures are worth nothing without."""
    load = " ".join(f"{value:.2f}" for value in os.getloadavg())
    return (
        f"{os.cpu_count()} cores ({_cpu_name()}), Python {platform.python_version()},"
        f" OR-Tools {version('ortools')}, NumPy {version('numpy')}; load average {load}"
    )


def _cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def heading(names: Sequence[str]) -> str:
    """The first two lines of a table."""
    return f"{row(names)}\n{row(['---'] * len(names))}"


def row(cells: Sequence[object]) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def duration(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of all does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
