"""Second stage: what only chains of moves can reach, as an integer flow of kinds of movers.

Movers of one kind (same request, same allowed nodes, same charges) are interchangeable as
targets go, so each mover only has "leaves" and each kind "so many arrive at node j". Capacity
holds in the final state; whether an order exists, and whether it takes detours, is looked at
afterwards, and a set of moves that cannot be carried out at its own cost is cut off and the search
goes on. Detours end in a final state as well and only add to its cost, so a bound found here holds
for plans with detours.
"""

from collections import Counter
from collections.abc import Mapping

import numpy as np
from ortools.sat.python import cp_model

from rebalancer.planning.ordering import LONGEST_SEARCH, OrderingLimitError, Slot, find_order
from rebalancer.planning.problem import INFINITE, FitProblem, Moves, Outcome, Solution
from rebalancer.scheduling.state import IntArray

_MAX_CUTS = 25
"""Sets of moves without an order that are cut off before the search is given up; a guess."""

OUT_OF_TIME = "the solver's time ran out"
TOO_MANY_NODES = "only the most promising nodes were searched"


class _Model:
    """The variables of one flow model over some of the nodes."""

    def __init__(self, problem: FitProblem, nodes: IntArray, cost_limit: float) -> None:
        self.problem = problem
        self.kinds = problem.kinds
        self.cp = cp_model.CpModel()
        self.nodes = [int(node) for node in nodes]
        is_in = np.zeros(problem.node_count, np.bool_)
        is_in[nodes] = True
        movers = np.flatnonzero(is_in[problem.mover_node] & (problem.mover_cost < cost_limit))
        self.leaves = {int(i): self.cp.new_bool_var(f"leaves_{i}") for i in movers}
        self.arrives = self._arrivals()
        self.lands = {
            node: self.cp.new_bool_var(f"lands_{node}")
            for node in self.nodes
            if problem.landing[node]
        }
        self.objective = sum(
            int(problem.mover_cost[i]) * var for i, var in self.leaves.items()
        ) + sum(self._charge(slot) * var for slot, var in self.arrives.items())
        self._constrain()

    def _members(self) -> Mapping[int, list[int]]:
        members: dict[int, list[int]] = {}
        for mover in self.leaves:
            members.setdefault(int(self.kinds[mover]), []).append(mover)
        return members

    def _charge(self, slot: Slot) -> int:
        kind, node = slot
        first = next(i for i in self.leaves if self.kinds[i] == kind)
        return int(self.problem.charge[self.problem.mover_class[first], node])

    def _arrivals(self) -> dict[Slot, cp_model.IntVar]:
        """One variable per kind and node that could take one of it if all movers there left."""
        most = self.problem.headroom.copy()
        for mover in self.leaves:
            most[self.problem.mover_node[mover]] += self.problem.mover_release[mover]
        arrives = {}
        for kind, members in sorted(self._members().items()):
            allowed = self.problem.allowed[self.problem.mover_class[members[0]]]
            allowed = allowed & self.problem.fits(self.problem.mover_request[members[0]], most)
            upper = min(len(members), self.problem.max_moves)
            for node in self.nodes:
                if allowed[node]:
                    arrives[kind, node] = self.cp.new_int_var(0, upper, f"arrives_{kind}_{node}")
        return arrives

    def _constrain(self) -> None:
        self.cp.add_exactly_one(self.lands.values())
        self.cp.add(sum(self.leaves.values()) <= self.problem.max_moves)
        for kind, members in sorted(self._members().items()):
            arriving = [var for (k, _), var in self.arrives.items() if k == kind]
            self.cp.add(sum(self.leaves[i] for i in members) == sum(arriving))
        for node in self.nodes:
            for resource in range(len(self.problem.request)):
                self._bound_room(node, resource)
        self.cp.minimize(self.objective)

    def _bound_room(self, node: int, resource: int) -> None:
        """What arrives must fit; a node that nothing arrives at may stay over-committed."""
        amount = self.problem.mover_request[:, resource]
        release = self.problem.mover_release[:, resource]
        of_kind = {int(self.kinds[i]): int(amount[i]) for i in self.leaves}
        arriving = [
            (of_kind[kind], var)
            for (kind, at), var in self.arrives.items()
            if at == node and of_kind[kind]
        ]
        if node in self.lands and self.problem.request[resource]:
            arriving.append((int(self.problem.request[resource]), self.lands[node]))
        if not arriving:
            return
        used = sum(size * var for size, var in arriving) - sum(
            int(release[i]) * var
            for i, var in self.leaves.items()
            if self.problem.mover_node[i] == node
        )
        headroom = int(self.problem.headroom[node, resource])
        constraint = self.cp.add(used <= headroom)
        if headroom < 0:
            any_arrives = self.cp.new_bool_var(f"any_arrives_{node}_{resource}")
            constraint.only_enforce_if(any_arrives)
            for _, var in arriving:
                self.cp.add(var == 0).only_enforce_if(~any_arrives)

    def read(self, solver: cp_model.CpSolver) -> tuple[frozenset[int], Counter[Slot], int]:
        """Which movers leave, how many of which kind arrive where, and the landing node."""
        left = frozenset(i for i, var in self.leaves.items() if solver.boolean_value(var))
        arrived = Counter({slot: int(solver.value(var)) for slot, var in self.arrives.items()})
        node = next(node for node, var in self.lands.items() if solver.boolean_value(var))
        return left, +arrived, node

    def order(
        self, left: frozenset[int], arrived: Counter[Slot], node: int, cost_limit: float
    ) -> Moves | None:
        """The moves, with detours if need be, in an order that works and costs less than the limit.

        A mover that would come back to its node stays.
        """
        slots = Counter(arrived)
        leaving = []
        for mover in sorted(left):
            own = int(self.kinds[mover]), int(self.problem.mover_node[mover])
            if slots[own]:
                slots[own] -= 1
            else:
                leaving.append(mover)
        return find_order(self.problem, self.kinds, leaving, +slots, node, cost_limit)

    def cut(self, left: frozenset[int], arrived: Counter[Slot]) -> None:
        """Forbids just these movers going to just these nodes."""
        escapes = [~var if i in left else var for i, var in self.leaves.items()]
        for slot, count in sorted(arrived.items()):
            fewer = self.cp.new_bool_var(f"fewer_{slot}_{len(self.cp.proto.constraints)}")
            self.cp.add(self.arrives[slot] < count).only_enforce_if(fewer)
            escapes.append(fewer)
        self.cp.add_bool_or(escapes)


def solve_flow(
    problem: FitProblem, nodes: IntArray, known: Outcome, work_limit: float, *, is_whole: bool
) -> Outcome:
    """Improves on what is known by a search over the given nodes.

    `work_limit`: in OR-Tools' deterministic time, about seconds on one core. `is_whole`: the nodes
    are all that could take part, so that a bound found here holds for all plans.
    """
    best = known.solution
    model = _Model(problem, nodes, best.cost if best else INFINITE)
    if not model.lands or not model.leaves:
        return known
    solver_bound, detour_bound, gave_up = known.bound, INFINITE, ""
    for _ in range(_MAX_CUTS):
        if best is not None:
            model.cp.add(model.objective < best.cost)
        solver, status = _solve(model.cp, work_limit)
        work_limit -= solver.response_proto.deterministic_time
        if status == cp_model.INFEASIBLE:
            solver_bound = INFINITE
            break
        if status == cp_model.UNKNOWN:
            gave_up = OUT_OF_TIME
            break
        solver_bound = max(solver_bound, solver.best_objective_bound)
        left, arrived, node = model.read(solver)
        moves = None
        try:
            moves = model.order(left, arrived, node, best.cost if best else INFINITE)
        except OrderingLimitError as error:
            detour_bound, gave_up = min(detour_bound, error.bound), str(error)
            work_limit -= LONGEST_SEARCH
        if moves is not None:
            best = Solution(node, moves, problem.cost(moves))
        if moves is None or best is None or best.cost > solver.objective_value:
            model.cut(left, arrived)
        elif status == cp_model.OPTIMAL:
            break
        if work_limit <= 0:
            gave_up = OUT_OF_TIME
            break
    else:
        gave_up = f"{_MAX_CUTS} sets of moves were found that cannot be carried out in any order"
    bound = min(solver_bound, detour_bound) if is_whole else known.bound
    outcome = Outcome(best, bound).normalised()
    if outcome.is_proven:
        return outcome
    return outcome._replace(gave_up_because=gave_up or TOO_MANY_NODES)


def _solve(
    model: cp_model.CpModel, work_limit: float
) -> tuple[cp_model.CpSolver, cp_model.CpSolverStatus]:
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 0
    solver.parameters.max_deterministic_time = work_limit
    return solver, solver.solve(model)
