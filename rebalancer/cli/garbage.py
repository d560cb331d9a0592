"""How often the interpreter looks for garbage."""

import gc

_NEW_OBJECTS = 100_000


def collect_seldom() -> None:
    """Fit for a process that reads a cluster: millions of objects come into being and stay.

    By default the collector goes through the newest after every 700 of them, which takes a fifth
    of the time of reading and planning 100,000 VMs (docs/benchmarks.md).
    """
    gc.set_threshold(_NEW_OBJECTS, 10, 2)
