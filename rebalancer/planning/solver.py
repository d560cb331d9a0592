"""Answers integer programs; the one module that knows OR-Tools."""

from collections.abc import Sequence
from typing import NamedTuple

from ortools.sat.python import cp_model

from rebalancer.planning.problem import INFINITE
from rebalancer.planning.program import IntegerProgram


class Answer(NamedTuple):
    """What is known of a program in the end. A solution is the best if it costs the bound."""

    values: Sequence[int] | None
    """One for each variable."""
    bound: float
    """No solution costs less; infinite if there is none."""
    work: float
    """As it counts towards the limit."""


def solve(program: IntegerProgram, work_limit: float) -> Answer:
    """The cheapest solution, or as much as is known once the work limit is reached.

    `work_limit`: in CP-SAT's deterministic time.
    """
    model = cp_model.CpModel()
    variables = [model.new_int_var(0, upper, "") for upper in program.upper]

    def expression(terms: Sequence[tuple[int, int]]) -> cp_model.LinearExprT:
        return cp_model.LinearExpr.weighted_sum(
            [variables[var] for var, _ in terms], [factor for _, factor in terms]
        )

    for row in program.rows:
        model.add_linear_constraint(expression(row.terms), row.lower, row.upper)
    model.minimize(expression(program.objective()))
    solver = cp_model.CpSolver()
    # One worker and a fixed seed: equal programs get equal answers.
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 0
    solver.parameters.linearization_level = 2
    solver.parameters.max_deterministic_time = work_limit
    status = solver.solve(model)
    if status == cp_model.MODEL_INVALID:
        raise ValueError(f"CP-SAT takes no such program: {solver.solution_info()}")
    work = solver.response_proto.deterministic_time
    if status == cp_model.INFEASIBLE:
        return Answer(None, INFINITE, work)
    if status == cp_model.UNKNOWN:
        return Answer(None, solver.best_objective_bound, work)
    values = [solver.value(variable) for variable in variables]
    return Answer(values, solver.best_objective_bound, work)
