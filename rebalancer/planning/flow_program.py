"""The fit problem's final state as an integer program: a flow of kinds of movers.

Movers of one kind (same request, same allowed nodes, same charges) are interchangeable as
targets go, so each mover only has "leaves" and each kind "so many arrive at node j".
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rebalancer.planning.bounds import FloatArray
from rebalancer.planning.ordering import Slot, find_order
from rebalancer.planning.problem import FitProblem, Moves
from rebalancer.planning.program import IntegerProgram
from rebalancer.planning.reduction import Reduction
from rebalancer.scheduling.state import IntArray

Terms = list[tuple[int, int]]


class Flow(NamedTuple):
    """A solution of the program."""

    left: frozenset[int]
    """Movers."""
    arrived: Counter[Slot]
    node: int
    """Where the item lands."""
    cost: int

    def in_order(self, problem: FitProblem, cost_limit: float, max_states: int) -> Moves | None:
        """The moves, with detours if need be, in an order that works and costs less than the limit.

        A mover that would come back to its node stays.

        Raises: OrderingLimitError.
        """
        slots = Counter(self.arrived)
        leaving = []
        for mover in sorted(self.left):
            own = int(problem.kinds[mover]), int(problem.mover_node[mover])
            if slots[own]:
                slots[own] -= 1
            else:
                leaving.append(mover)
        return find_order(problem, leaving, +slots, self.node, cost_limit, max_states)


class FlowProgram:
    """Which movers leave, how many of which kind arrive where, and where the item lands."""

    def __init__(self, problem: FitProblem, part: Reduction, landing_bounds: FloatArray) -> None:
        self.problem = problem
        self.program = program = IntegerProgram()
        self.leaves = {
            int(i): program.variable(1, int(problem.mover_cost[i]))
            for i in np.flatnonzero(part.leaves)
        }
        self.members: dict[int, list[int]] = {}
        for mover in self.leaves:
            self.members.setdefault(int(problem.kinds[mover]), []).append(mover)
        self.arrives = self._arrivals(part)
        self.lands = {int(j): program.variable(1) for j in np.flatnonzero(part.landing)}
        program.equal([(var, 1) for var in self.lands.values()], 1)
        program.at_most([(var, 1) for var in self.leaves.values()], problem.max_moves)
        self._balance()
        self._bound_rooms()
        # Not needed for a right answer, but for a quick one: what is known of each landing node.
        known = [(var, -int(np.ceil(landing_bounds[j] - 1e-6))) for j, var in self.lands.items()]
        program.at_least([*program.objective(), *known], 0)

    def _arrivals(self, part: Reduction) -> dict[Slot, int]:
        """One variable per kind and node that could take one of it if all movers there left."""
        problem = self.problem
        most = problem.headroom.copy()
        movers = np.fromiter(self.leaves, np.int64)
        np.add.at(most, problem.mover_node[movers], problem.mover_release[movers])
        arrives = {}
        for kind, members in sorted(self.members.items()):
            first = members[0]
            fits = part.arrives[kind] & problem.fits(problem.mover_request[first], most)
            charge = problem.charge[problem.mover_class[first]]
            upper = min(len(members), problem.max_moves)
            for node in map(int, np.flatnonzero(fits)):
                arrives[kind, node] = self.program.variable(upper, int(charge[node]))
        return arrives

    def _balance(self) -> None:
        arriving: dict[int, Terms] = {}
        for (kind, _), var in self.arrives.items():
            arriving.setdefault(kind, []).append((var, -1))
        for kind, members in sorted(self.members.items()):
            leaving = [(self.leaves[i], 1) for i in members]
            self.program.equal(leaving + arriving.get(kind, []), 0)

    def _bound_rooms(self) -> None:
        arriving: dict[int, list[tuple[IntArray, int, int]]] = {}
        for (kind, node), var in self.arrives.items():
            request = self.problem.mover_request[self.members[kind][0]]
            arriving.setdefault(node, []).append((request, var, self.program.upper[var]))
        for node, var in self.lands.items():
            arriving.setdefault(node, []).append((self.problem.request, var, 1))
        leaving: dict[int, list[tuple[IntArray, int]]] = {}
        for mover, var in self.leaves.items():
            node = int(self.problem.mover_node[mover])
            leaving.setdefault(node, []).append((self.problem.mover_release[mover], var))
        for node, items in sorted(arriving.items()):
            for r in range(len(self.problem.request)):
                takes = [(var, int(request[r])) for request, var, _ in items if request[r]]
                gives = [(var, int(gain[r])) for gain, var in leaving.get(node, []) if gain[r]]
                uppers = [upper for request, _, upper in items if request[r]]
                if takes:
                    self._bound_room(int(self.problem.headroom[node, r]), takes, uppers, gives)

    def _bound_room(self, headroom: int, takes: Terms, uppers: Sequence[int], gives: Terms) -> None:
        """What arrives must fit; a node that nothing arrives at may stay over-committed."""
        if sum(size * upper for (_, size), upper in zip(takes, uppers, strict=True)) <= headroom:
            return
        given = [(var, -size) for var, size in gives]
        if headroom >= 0:
            self.program.at_most(takes + given, headroom)
        else:
            any_arrives = self.program.variable(1)
            self.program.at_most([*takes, *given, (any_arrives, -headroom)], 0)
            for (var, _), upper in zip(takes, uppers, strict=True):
                self.program.at_most([(var, 1), (any_arrives, -upper)], 0)
        # Not needed for a right answer, but for a quick one: without it half an arrival costs
        # nothing, since it fits into the room that there is.
        lacks = [(var, size - max(headroom, 0)) for var, size in takes if size > headroom]
        if lacks:
            self.program.at_most(lacks + given, 0)

    def read(self, values: Sequence[int]) -> Flow:
        return Flow(
            left=frozenset(i for i, var in self.leaves.items() if values[var]),
            arrived=Counter(
                {slot: values[var] for slot, var in self.arrives.items() if values[var]}
            ),
            node=next(node for node, var in self.lands.items() if values[var]),
            cost=sum(factor * values[var] for var, factor in self.program.objective()),
        )

    def cut(self, flow: Flow) -> None:
        """Forbids just these movers going to just these nodes."""
        if not (self.leaves.keys() >= flow.left and self.arrives.keys() >= flow.arrived.keys()):
            return
        escapes = [(var, -1 if i in flow.left else 1) for i, var in self.leaves.items()]
        for slot, count in sorted(flow.arrived.items()):
            fewer, upper = self.program.variable(1), self.program.upper[self.arrives[slot]]
            self.program.at_most([(self.arrives[slot], 1), (fewer, upper - count + 1)], upper)
            escapes.append((fewer, 1))
        self.program.at_least(escapes, 1 - len(flow.left))
