"""Moves for large VMs' slots have their room in turn, and the model bounds what moves can make."""

import numpy as np
import pytest

from benchmarks.fragment_rate.cluster import SETTINGS, Cluster, generate
from benchmarks.fragment_rate.greedy import improve
from benchmarks.fragment_rate.model import in_order, solve


def _two_halves() -> Cluster:
    """Two NUMA nodes with 8 free cores each; one VM of 8 cores on the first would make a slot."""
    return Cluster(
        free_cores=np.array([8, 8]),
        free_gib=np.array([64, 64]),
        cores=np.array([8]),
        gib_per_core=np.array([2]),
        numa=np.array([0]),
    )


def _small() -> Cluster:
    """Ten machines of a generated cluster."""
    whole = generate(SETTINGS["C"], seed=0)
    here = whole.numa < 20
    return Cluster(
        free_cores=whole.free_cores[:20],
        free_gib=whole.free_gib[:20],
        cores=whole.cores[here],
        gib_per_core=whole.gib_per_core[here],
        numa=whole.numa[here],
    )


def test_cores_that_are_of_no_use_to_a_large_vm_are_fragments() -> None:
    assert _two_halves().fragment_rate == 1
    assert _two_halves().slots == 0


def test_a_move_that_fills_one_remainder_makes_a_slot_of_the_other() -> None:
    cluster = _two_halves()
    assert improve(cluster, 1, with_pairs=False) == [(0, 1)]
    assert cluster.fragment_rate == 0


def test_a_vm_never_goes_where_it_has_no_room() -> None:
    cluster = _two_halves()._replace(free_gib=np.array([64, 4]))
    with pytest.raises(ValueError, match="VM 0 does not fit on NUMA node 1"):
        cluster.move(0, 1)


def test_a_generated_cluster_is_never_overfilled() -> None:
    for setting in SETTINGS.values():
        cluster = generate(setting, seed=0)
        assert (cluster.free_cores >= 0).all()
        assert (cluster.free_gib >= 0).all()
        assert (cluster.numa >= 0).all()


def test_the_model_is_at_least_as_good_as_the_moves_it_starts_from() -> None:
    start = _small()
    greedy = start.copy()
    known = improve(greedy, 5, with_pairs=True)
    target = solve(start, known, max_moves=5, core_seconds=60)
    best = start.copy()
    moves = in_order(best, target)
    assert len(moves) == sum(target.leaving.values()) <= 5
    assert greedy.slots <= best.slots == target.max_slots
