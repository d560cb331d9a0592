"""Problems of evening out load: builders, and what any plan for them must keep to."""

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
from hypothesis import strategies as st

from rebalancer.planning.ordering import dependencies
from rebalancer.planning.problem import Moves
from rebalancer.planning.spread_problem import Measure, SpreadProblem

Mover = tuple[int, int]
"""(node, size)"""


def spread_problem(
    capacity: Sequence[int],
    movers: Sequence[Mover],
    *,
    immovable: Sequence[int] | None = None,
    measure: Measure = Measure.SQUARED_DEVIATION,
    min_gain_per_cost_second: float = 0.0,
    max_moves: int = 10,
) -> SpreadProblem:
    """One resource, which is what is measured too; each move costs a second."""
    node = np.array([node for node, _ in movers], np.int64)
    size = np.array([[size] for _, size in movers], np.int64).reshape(-1, 1)
    load = np.array(immovable or [0] * len(capacity), np.int64)[:, None]
    np.add.at(load, node, size)
    room = np.array(capacity, np.int64)[:, None]
    return SpreadProblem(
        headroom=room - load,
        mover_node=node,
        mover_request=size,
        mover_release=size,
        mover_cost=np.full(len(movers), 1000),
        mover_class=np.zeros(len(movers), np.int64),
        allowed=np.ones((1, len(capacity)), np.bool_),
        charge=np.zeros((1, len(capacity)), np.int64),
        max_moves=max_moves,
        load=load,
        capacity=room,
        mover_load=size,
        counts=np.ones(len(capacity), np.bool_),
        measure=measure,
        min_gain_per_cost_second=min_gain_per_cost_second,
    )


@st.composite
def spread_problems(
    draw: st.DrawFn, measure: Measure, nodes: int = 4, movers: int = 8, max_moves: int = 8
) -> SpreadProblem:
    """Small and tight, with all that makes movers differ: what they request beside their load,
    what they leave behind, where they may go and at what cost.
    """
    n = draw(st.integers(2, nodes))
    m = draw(st.integers(1, movers))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    classes = draw(st.integers(1, 2))
    request = rng.integers(1, 7, (m, 2))
    load = rng.integers(0, 7, (m, 2)) if draw(st.booleans()) else request
    mover_node = rng.integers(0, n, m)
    node_load = rng.integers(0, 5, (n, 2))
    np.add.at(node_load, mover_node, load)
    return SpreadProblem(
        headroom=rng.integers(-1, 12, (n, 2)),
        mover_node=mover_node,
        mover_request=request,
        mover_release=request - (rng.random((m, 2)) < 0.15),
        mover_cost=rng.integers(1, 10, m) * 1000,
        mover_class=rng.integers(0, classes, m),
        allowed=rng.random((classes, n)) < 0.9,
        charge=np.maximum(0, rng.integers(-3, 4, (classes, n))) * 1000,
        max_moves=draw(st.integers(0, max_moves)),
        load=node_load,
        capacity=rng.integers(10, 30, (n, 2)),
        mover_load=load,
        counts=rng.random(n) < 0.9,
        measure=measure,
        min_gain_per_cost_second=draw(st.sampled_from([0.0, 0.001, 0.01])),
    )


def with_limit(problem: SpreadProblem, max_moves: int) -> SpreadProblem:
    return msgspec.structs.replace(problem, max_moves=max_moves)


def check_plan(problem: SpreadProblem, moves: Moves) -> None:
    """Whatever starts first, no node is overfilled with both copies counted; nobody moves twice,
    to where it may not go, or off or onto a node that does not count.
    """
    assert len(moves) <= problem.max_moves
    assert len({mover for mover, _ in moves}) == len(moves)
    waits = dependencies(problem, moves)
    steps = problem.steps(moves)
    for index, step in enumerate(steps):
        assert step.target != step.source
        assert problem.allowed[problem.mover_class[step.mover], step.target]
        assert problem.counts[[step.source, step.target]].all()
        # The worst that may be: all before it have arrived, and only those waited for have left.
        room = problem.headroom[step.target].copy()
        for earlier in steps[:index]:
            if earlier.target == step.target:
                room -= problem.mover_request[earlier.mover]
        for waited in waits[index]:
            if steps[waited].source == step.target:
                room += steps[waited].release
        assert problem.fits(problem.mover_request[step.mover], room)


def every_plan(problem: SpreadProblem) -> Iterator[Moves]:
    """A plan for each way to place the movers that some order of moves, one each, leads to."""
    plans: list[Moves] = [()]
    seen = {frozenset[tuple[int, int]]()}
    while plans:
        moves = plans.pop()
        yield moves
        if len(moves) == problem.max_moves:
            continue
        state = problem.after(moves)
        for mover in set(range(problem.mover_count)) - {mover for mover, _ in moves}:
            homes = state.homes(mover, state.headroom) & problem.counts
            homes &= problem.counts[problem.mover_node[mover]]
            for target in map(int, np.flatnonzero(homes)):
                placed = frozenset((*moves, (mover, target)))
                if placed not in seen:
                    seen.add(placed)
                    plans.append((*moves, (mover, target)))
