"""Asks the real kube-scheduler and the product about many random pods and nodes.

    python -m benchmarks.scheduler_differential --pairs 50000

Ends with 1 if the product lets a pod in where the scheduler does not.
"""

import argparse
import sys
import time
from collections import Counter

from tests.differential.cases import generate
from tests.differential.comparison import compare, describe, prepare, shrunk
from tests.differential.rig import SchedulerRig


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=50_000, help="how many to ask about at least")
    parser.add_argument("--seed", type=int, default=0, help="of the first cluster")
    options = parser.parse_args()
    with SchedulerRig() as rig:
        prepare(rig)
        return _run(rig, options.pairs, options.seed)


def _run(rig: SchedulerRig, wanted: int, seed: int) -> int:
    started = time.monotonic()
    pairs = feasible = unsafe = messages = 0
    first = seed
    overcautious: Counter[str] = Counter()
    while pairs < wanted:
        case = generate(seed)
        result = compare(rig, case)
        for difference in result.differences:
            if difference.is_unsafe:
                unsafe += 1
                print(describe(shrunk(rig, case, difference), difference), flush=True)
            else:
                overcautious[", ".join(difference.predicates)] += 1
        pairs += result.pairs
        feasible += result.feasible_pairs
        messages += len(result.other_messages)
        seed += 1
        print(f"\r{pairs}/{wanted} pairs, {unsafe} unsafe", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print(f"seeds {first} to {seed - 1}: {pairs} pairs in {time.monotonic() - started:.0f} s")
    print(f"let in by the scheduler: {feasible}")
    print(f"let in by the product alone: {unsafe}")
    for predicates, count in overcautious.most_common():
        print(f"kept out by the product alone: {count} ({count / pairs:.4%}) by {predicates}")
    print(f"pods of which the counted reasons differ: {messages}")
    return 1 if unsafe else 0


if __name__ == "__main__":
    sys.exit(main())
