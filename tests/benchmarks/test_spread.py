"""What the benchmark of evening out load compares is comparable."""

import numpy as np
import pytest

from benchmarks.generator import Recipe, generate
from benchmarks.spread import greedy, replayed, spread_problem, without_rules
from rebalancer.planning.spread import even_out, least_measure
from rebalancer.planning.spread_problem import Measure, SpreadProblem


@pytest.fixture(scope="module")
def problem() -> SpreadProblem:
    cluster = generate(Recipe("16/150", 0.85, 0, "churn"))
    assert cluster is not None
    return spread_problem(cluster, 10, Measure.SQUARED_DEVIATION)


def test_bound_planner_and_greedy_rule_come_in_this_order(problem: SpreadProblem) -> None:
    ours = even_out(problem).moves
    found, simple = replayed(problem, ours), replayed(problem, greedy(problem))
    assert least_measure(problem, ours) <= found <= simple < problem.value


def test_moves_without_room_are_told(problem: SpreadProblem) -> None:
    full = int(np.argmin(problem.headroom[:, 1]))
    homeless = int(np.argmax(problem.mover_request[:, 1] * (problem.mover_node != full)))
    with pytest.raises(ValueError, match="cannot be carried out"):
        replayed(problem, ((homeless, full),))


def test_without_rules_a_node_has_what_its_vms_have(problem: SpreadProblem) -> None:
    plain = without_rules(problem)
    assert plain.allowed.all()
    assert (plain.capacity - plain.load == plain.headroom).all()
