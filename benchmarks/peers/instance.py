"""What every program is given: one VM that is to fit, in a form that is easy to read anywhere.

As text, one object a line, numbers separated by spaces, counted from 0 in order:

    node CPU MEMORY             what is left for VMs, in millicores and MiB
    class NODE...               nodes that VMs of the class may go to
    vm NODE CPU MEMORY CLASS
    pending 0 CPU MEMORY CLASS
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from benchmarks.generator import CPU, MEMORY, Recipe, fit_problem, generate
from rebalancer.planning.problem import FitProblem


class Instance(NamedTuple):
    """A named fit problem whose movers are all the VMs and whose costs are MiB to copy."""

    name: str
    problem: FitProblem

    def text(self) -> str:
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        problem = self.problem
        capacity = problem.headroom.copy()
        np.add.at(capacity, problem.mover_node, problem.mover_request)
        for cpu, memory in capacity[:, [CPU, MEMORY]]:
            yield f"node {cpu} {memory}"
        for allowed in (*problem.allowed, problem.landing):
            yield " ".join(["class", *map(str, np.flatnonzero(allowed))])
        for mover in range(problem.mover_count):
            cpu, memory = problem.mover_request[mover, [CPU, MEMORY]]
            yield f"vm {problem.mover_node[mover]} {cpu} {memory} {problem.mover_class[mover]}"
        cpu, memory = problem.request[[CPU, MEMORY]]
        yield f"pending 0 {cpu} {memory} {len(problem.allowed)}"


def generated(recipe: Recipe) -> Instance | None:
    """Without anti-affinity and without a limit on moves or pods, which not all peers know."""
    cluster = generate(recipe._replace(grouped_share=0))
    if cluster is None:
        return None
    full = fit_problem(cluster, max_moves=len(cluster.vm_node))
    columns = [CPU, MEMORY]
    return Instance(
        str(recipe),
        FitProblem(
            request=full.request[columns],
            landing=full.landing,
            headroom=full.headroom[:, columns],
            mover_node=full.mover_node,
            mover_request=full.mover_request[:, columns],
            mover_release=full.mover_release[:, columns],
            mover_cost=full.mover_request[:, MEMORY],
            mover_class=full.mover_class,
            allowed=full.allowed,
            charge=full.charge,
            max_moves=full.max_moves,
        ),
    )


def micro_cases() -> list[Instance]:
    """Small ones about the order of moves, each with what it comes to in its name."""
    return [
        # The VM on node 1 must leave for node 2 before the one on node 0 can take its place.
        _gib("two full nodes, one empty", [8, 8, 8], [(0, 8, [1]), (1, 8, [0, 2])], (8, [0])),
        # In the end node 2 must be empty, but only over it can the others change places.
        _gib(
            "full cycle over the node that is wanted",
            [8, 8, 10],
            [(0, 6, [1, 2]), (1, 8, [0, 2]), (2, 2, [1])],
            (10, [2]),
        ),
        # Changing places would make room, but neither can go first.
        _gib("full cycle without a way out", [8, 8], [(0, 8, [1]), (1, 6, [0])], (2, [0])),
    ]


def _gib(
    name: str,
    nodes: list[int],
    vms: list[tuple[int, int, list[int]]],
    pending: tuple[int, list[int]],
) -> Instance:
    """VMs as (node, GiB, nodes it may go to), the pending one as (GiB, nodes)."""
    size = np.array([gib for _, gib, _ in vms]) * 1024
    request = np.column_stack([np.full(len(vms), 1000), size])
    place = np.array([node for node, _, _ in vms])
    capacity = np.column_stack([np.full(len(nodes), 100_000), np.array(nodes) * 1024])
    np.subtract.at(capacity, place, request)
    return Instance(
        name,
        FitProblem(
            request=np.array([1000, pending[0] * 1024]),
            landing=np.isin(np.arange(len(nodes)), pending[1]),
            headroom=capacity,
            mover_node=place,
            mover_request=request,
            mover_release=request,
            mover_cost=size,
            mover_class=np.arange(len(vms)),
            allowed=np.array([np.isin(np.arange(len(nodes)), homes) for _, _, homes in vms]),
            charge=np.zeros((len(vms), len(nodes)), np.int64),
            max_moves=10,
        ),
    )
