"""Clusters of the ROADEF/EURO shape: processes of a service apart, transient resources kept."""

import numpy as np

from benchmarks.roadef import SHAPES, generate

SHAPE = SHAPES["a1_4"]


def test_the_pending_process_fits_on_no_machine_as_it_is() -> None:
    problem = generate(SHAPE, 0.7, seed=0)
    assert problem is not None
    assert (problem.headroom >= 0).all()
    assert not problem.fits(problem.request, problem.headroom).any()


def test_no_machine_has_two_processes_of_a_service_nor_takes_one() -> None:
    problem = generate(SHAPE, 0.7, seed=0)
    assert problem is not None
    pairs = set(zip(problem.mover_class.tolist(), problem.mover_node.tolist(), strict=True))
    assert len(pairs) == problem.mover_count
    assert not problem.allowed[problem.mover_class, problem.mover_node].any()


def test_a_process_that_leaves_keeps_what_is_transient() -> None:
    problem = generate(SHAPE, 0.7, seed=0)
    assert problem is not None
    assert (problem.mover_release[:, : SHAPE.transient] == 0).all()
    kept = slice(SHAPE.transient, None)
    np.testing.assert_array_equal(problem.mover_release[:, kept], problem.mover_request[:, kept])
