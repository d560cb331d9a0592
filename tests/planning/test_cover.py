"""All sets of movers that make room on one node, cheapest first."""

from itertools import combinations
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebalancer.planning import cover, remainders
from rebalancer.planning.cover import NodeCover, covers, whole_bound

_MAX_MOVES = 3


@st.composite
def node_covers(draw: st.DrawFn) -> NodeCover:
    """Up to seven movers of few sizes, and one or two resources that are short."""
    resources = draw(st.integers(1, 2))
    vectors = st.lists(st.integers(0, 6), min_size=resources, max_size=resources)
    sizes = draw(st.lists(vectors, min_size=1, max_size=3))
    movers = draw(
        st.lists(st.tuples(st.sampled_from(sizes), st.integers(1, 9)), min_size=1, max_size=7)
    )
    return _node(draw(st.lists(st.integers(1, 12), min_size=resources, max_size=resources)), movers)


def _node(deficit: list[int], movers: list[tuple[list[int], int]]) -> NodeCover:
    """`movers`: what each gives and costs. All are told apart, so that every set is asked for."""
    movers = sorted(movers, key=lambda mover: mover[1])
    return NodeCover(
        deficit=tuple(deficit),
        movers=tuple(range(len(movers))),
        gain=tuple(tuple(gain) for gain, _ in movers),
        cost=tuple(cost for _, cost in movers),
        kind=tuple(range(len(movers))),
        by_price=tuple(
            tuple(
                sorted(
                    (i for i, (gain, _) in enumerate(movers) if gain[d]),
                    key=lambda i: movers[i][1] / movers[i][0][d],
                )
            )
            for d in range(len(deficit))
        ),
    )


def _lean_sets(node: NodeCover) -> list[tuple[int, tuple[int, ...]]]:
    """By enumeration, with what they cost."""

    def is_enough(movers: tuple[int, ...]) -> bool:
        return all(
            sum(node.gain[i][d] for i in movers) >= lacks for d, lacks in enumerate(node.deficit)
        )

    return [
        (sum(node.cost[i] for i in movers), movers)
        for count in range(1, _MAX_MOVES + 1)
        for movers in combinations(range(len(node.movers)), count)
        if is_enough(movers)
        and not any(is_enough((*movers[:i], *movers[i + 1 :])) for i in range(count))
    ]


@pytest.mark.parametrize("fractional_steps", [0, 3, 1000])
@pytest.mark.parametrize("states", [2, 4000])
@settings(max_examples=100, deadline=None)
@given(node=node_covers())
def test_every_set_comes_at_its_cost_and_after_all_bounds_before(
    node: NodeCover, fractional_steps: int, states: int
) -> None:
    with (
        patch.object(cover, "_FRACTIONAL_STEPS", fractional_steps),
        patch.object(remainders, "_MAX_STATES", states),
    ):
        steps = list(covers(node, _MAX_MOVES))
    bounds = [step.bound for step in steps]
    assert bounds == sorted(bounds)
    found = [(step.bound, step.movers) for step in steps if step.movers is not None]
    assert sorted(found) == sorted(_lean_sets(node))


def test_in_whole_movers_the_bound_is_the_cheapest_set() -> None:
    """In parts, 7 of 12 could be had of the large mover for less."""
    node = _node([7], [([4], 6), ([4], 6), ([12], 13)])
    assert node.bound(0, node.deficit) == 13 * 7 / 12
    assert whole_bound(node, _MAX_MOVES) == 12
    assert whole_bound(node, 1) == 13
