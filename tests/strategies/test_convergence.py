"""All strategies together come to rest, with VMs coming and going."""

import pytest

from benchmarks.convergence import run


@pytest.mark.parametrize("seed", range(12))
def test_strategies_come_to_rest_and_break_no_rule(seed: int) -> None:
    history, _ = run(seed)
    assert not history.broken, history
