"""The model of placement against the real kube-scheduler, pair by pair of pod and node."""

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.differential.cases import generate
from tests.differential.comparison import compare, describe, prepare, shrunk
from tests.differential.rig import SchedulerRig

_FIRST_SEED = 1_000_000
"""Far from those that `benchmarks/scheduler_differential.py` begins with."""
_PAIRS = 4000
_MAX_OVERCAUTIOUS = 0.005


@pytest.fixture(scope="module")
def rig() -> Iterator[SchedulerRig]:
    with SchedulerRig() as running:
        prepare(running)
        yield running


def test_product_lets_no_pod_in_where_the_scheduler_does_not(rig: SchedulerRig) -> None:
    """Nor does it keep many out that the scheduler lets in, and it says the same why not."""
    pairs = feasible = 0
    overcautious: Counter[tuple[str, ...]] = Counter()
    seed = _FIRST_SEED
    while pairs < _PAIRS:
        case = generate(seed)
        result = compare(rig, case)
        for difference in result.differences:
            if difference.is_unsafe:
                pytest.fail(describe(shrunk(rig, case, difference), difference))
            overcautious[difference.predicates] += 1
        if not result.differences:
            assert result.other_messages == (), f"seed {seed}"
        pairs += result.pairs
        feasible += result.feasible_pairs
        seed += 1
    assert overcautious.total() / pairs < _MAX_OVERCAUTIOUS, overcautious
    assert feasible > pairs / 20, "hardly any pod fits anywhere: the cases test nothing"
