"""The whole fit problem as one integer model, for any solver that MathOpt knows.

As compact as it gets: each mover leaves or stays, and so many of each kind arrive at each node. It
knows nothing of the order of moves, so what it finds may not be executable.
"""

import time
from datetime import timedelta
from typing import NamedTuple

import numpy as np
from ortools.math_opt.python import mathopt
from ortools.math_opt.solvers import highs_pb2

from rebalancer.planning.problem import INFINITE, FitProblem
from rebalancer.scheduling.state import IntArray


class FlowResult(NamedTuple):
    """What a solver made of the model; without a cost it found nothing.

    Seconds are a core's.
    """

    cost: int | None
    bound: float
    variables: int
    build_seconds: float
    solve_seconds: float

    @property
    def is_proven(self) -> bool:
        return self.bound >= (INFINITE if self.cost is None else self.cost)


def solve_flow_model(
    problem: FitProblem, solver: mathopt.SolverType, limit_seconds: float
) -> FlowResult:
    """One thread, and no gap allowed."""
    parameters = mathopt.SolveParameters(
        time_limit=timedelta(seconds=limit_seconds),
        relative_gap_tolerance=0,
        absolute_gap_tolerance=0.5,
    )
    if solver is mathopt.SolverType.HIGHS:
        # MathOpt refuses its own `threads` for HiGHS.
        parameters.highs = highs_pb2.HighsOptionsProto(string_options={"parallel": "off"})
    else:
        parameters.threads = 1
    start = time.process_time()
    model = _build(problem)
    built = time.process_time()
    result = mathopt.solve(model, solver, params=parameters)
    solved = time.process_time()
    reason = result.termination.reason
    if reason is mathopt.TerminationReason.INFEASIBLE:
        cost, bound = None, INFINITE
    else:
        cost = round(result.objective_value()) if result.has_primal_feasible_solution() else None
        # Costs are whole; solvers' arithmetic is not.
        bound = float(np.ceil(result.best_objective_bound() - 1e-3))
    return FlowResult(cost, bound, model.get_num_variables(), built - start, solved - built)


def _build(problem: FitProblem) -> mathopt.Model:
    model = mathopt.Model()
    kinds = problem.kinds
    resources = range(len(problem.request))
    load: list[list[list[mathopt.LinearBase]]] = [
        [[] for _ in resources] for _ in range(problem.node_count)
    ]

    def put(node: int, sign: int, request: IntArray, variable: mathopt.Variable) -> None:
        for resource in resources:
            if request[resource]:
                load[node][resource].append(sign * int(request[resource]) * variable)

    leaves = [model.add_binary_variable() for _ in range(problem.mover_count)]
    for mover, variable in enumerate(leaves):
        put(int(problem.mover_node[mover]), -1, problem.mover_release[mover], variable)
    room = problem.headroom.copy()
    np.add.at(room, problem.mover_node, problem.mover_release)
    charged: list[mathopt.LinearBase] = []
    for kind in range(int(kinds.max(initial=-1)) + 1):
        members = np.flatnonzero(kinds == kind)
        first = int(members[0])
        request, k = problem.mover_request[first], int(problem.mover_class[first])
        arrivals = []
        for node in np.flatnonzero(problem.allowed[k] & problem.fits(request, room)):
            variable = model.add_integer_variable(lb=0, ub=min(len(members), problem.max_moves))
            put(int(node), 1, request, variable)
            arrivals.append(variable)
            if problem.charge[k, node]:
                charged.append(int(problem.charge[k, node]) * variable)
        left = mathopt.fast_sum(leaves[i] for i in members)
        model.add_linear_constraint(left == mathopt.fast_sum(arrivals))
    lands = []
    for node in np.flatnonzero(problem.landing & problem.fits(problem.request, room)):
        variable = model.add_binary_variable()
        put(int(node), 1, problem.request, variable)
        lands.append(variable)
    model.add_linear_constraint(mathopt.fast_sum(lands) == 1)
    model.add_linear_constraint(mathopt.fast_sum(leaves) <= problem.max_moves)
    for terms, headroom in zip(load, problem.headroom, strict=True):
        for resource in resources:
            model.add_linear_constraint(
                mathopt.fast_sum(terms[resource]) <= int(headroom[resource])
            )
    costs = [int(cost) * leave for cost, leave in zip(problem.mover_cost, leaves, strict=True)]
    model.minimize(mathopt.fast_sum([*costs, *charged]))
    return model
