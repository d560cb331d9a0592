"""Exact search for places for all items at once."""

import numpy as np
import pytest
from hypothesis import given, settings

from rebalancer.headroom.room import Item, Loss, Term
from rebalancer.headroom.search import Work, WorkLimitError, search
from tests.headroom.problems import Problem, has_placing, is_placing, problems, room_of

ENOUGH = 1_000_000


@given(problems())
@settings(max_examples=500, deadline=None)
def test_a_placing_is_found_just_if_there_is_one(problem: Problem) -> None:
    found = search(problem.room, problem.loss, problem.items, Work(ENOUGH))
    assert (found is not None) == has_placing(problem)
    if found is not None:
        assert sorted(item for item, _ in found.placed) == sorted(problem.items)
        items, nodes = zip(*found.placed, strict=True)
        assert is_placing(problem._replace(items=list(items)), nodes)


def test_search_ends_when_its_steps_are_used_up() -> None:
    room = room_of([[10], [10]], [[6], [4]])
    items = [Item(0), Item(0), Item(1), Item(1)]
    work = Work(ENOUGH)
    assert search(room, Loss((), 2), items, work) is not None
    used = ENOUGH - work.steps
    with pytest.raises(WorkLimitError):
        search(room, Loss((), 2), items, Work(used - 1))


def test_equal_nodes_and_equal_items_are_tried_once() -> None:
    """Without that, 20 items of 5 on 19 nodes of 9 would be tried in 19! ways and more."""
    work = Work(ENOUGH)
    assert search(room_of([[9]] * 19, [[5]]), Loss((), 19), [Item(0)] * 20, work) is None
    assert ENOUGH - work.steps < 1000


def test_nodes_with_equal_room_that_other_items_tell_apart_are_each_tried() -> None:
    allowed = [[1, 1, 0], [0, 1, 1], [1, 1, 0]]
    room = room_of([[1]] * 3, [[1]] * 3, allowed)
    assert search(room, Loss((), 3), [Item(0), Item(1), Item(2)], Work(ENOUGH)) is not None


def test_nodes_with_equal_room_in_different_domains_are_each_tried() -> None:
    nowhere = np.array([], np.int64)
    two_and_one = Term([0, 0, 1], nowhere, nowhere)
    room = room_of([[1]] * 3, [[1], [1]], terms=(two_and_one,))
    apart = [Item(0, holds=(0,)), Item(1, meant=(0,)), Item(1, meant=(0,))]
    found = search(room, Loss((), 3), apart, Work(ENOUGH))
    assert found is not None
    assert found.placed[0] == (apart[0], 2)
