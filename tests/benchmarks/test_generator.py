"""The benchmarks' clusters are what their recipe says, and plans for them can be carried out."""

from functools import partial

import numpy as np
import pytest

from benchmarks.generator import MEMORY, Recipe, fit_problem, generate
from benchmarks.replay import NotExecutableError, replay
from rebalancer.planning.fit import solve_fit
from rebalancer.planning.flow import solve_flow

RECIPE = Recipe("50/500", 0.95, seed=1)


def test_equal_recipes_give_equal_clusters() -> None:
    first, second = generate(RECIPE), generate(RECIPE)
    assert first is not None
    assert second is not None
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("mode", ["top", "churn", "hole2"])
def test_a_cluster_is_as_full_as_asked_and_no_node_is_overfilled(mode: str) -> None:
    cluster = generate(RECIPE._replace(mode=mode))
    assert cluster is not None
    assert (cluster.headroom >= 0).all()
    total = cluster.allocatable[:, MEMORY].sum()
    assert cluster.headroom[:, MEMORY].sum() / total == pytest.approx(0.05, abs=0.03)


def test_the_pending_vm_fits_nowhere_before_any_move() -> None:
    cluster = generate(RECIPE)
    assert cluster is not None
    problem = fit_problem(cluster)
    assert not (problem.landing & problem.fits(problem.request, problem.headroom)).any()


def test_vms_keep_off_the_nodes_of_their_group() -> None:
    cluster = generate(RECIPE)
    assert cluster is not None
    problem = fit_problem(cluster)
    movers = np.flatnonzero(~cluster.vm_is_pinned)
    groups = cluster.vm_group[movers]
    assert (groups >= 0).any()
    for mover in np.flatnonzero(groups >= 0):
        others = cluster.vm_node[cluster.vm_group == groups[mover]]
        assert not problem.allowed[problem.mover_class[mover], others].any()


def test_a_plan_for_a_generated_cluster_can_be_carried_out() -> None:
    cluster = generate(RECIPE)
    assert cluster is not None
    problem = fit_problem(cluster)
    solution = solve_fit(problem, partial(solve_flow, work_limit=1)).solution
    assert solution is not None
    replay(problem, solution.moves, solution.node)
    with pytest.raises(NotExecutableError, match="in the end"):
        replay(problem, (), solution.node)
