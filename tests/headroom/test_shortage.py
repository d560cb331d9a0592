"""Why no placing of some items can exist, in numbers."""

from hypothesis import given, settings

from rebalancer.headroom.room import Item, Loss
from rebalancer.headroom.shortage import TooFewSlots, TooLittle, shortage
from tests.headroom.problems import Problem, has_placing, problems, room_of


@given(problems())
@settings(max_examples=500, deadline=None)
def test_where_a_shortage_is_told_there_is_no_placing(problem: Problem) -> None:
    if shortage(problem.room, problem.loss, problem.items) is not None:
        assert not has_placing(problem)


def test_item_that_fits_on_no_node_that_is_left_is_enough() -> None:
    room = room_of([[9], [4]], [[5], [1]])
    found = shortage(room, Loss((0,), 2), [Item(1), Item(0)])
    assert found == TooFewSlots(room.requests[0], items=1, slots=0, nodes=1)


def test_slots_are_counted_for_all_items_that_are_as_large() -> None:
    room = room_of([[9], [9], [9]], [[5], [6]])
    found = shortage(room, Loss((0,), 3), [Item(0), Item(0), Item(1)])
    assert found == TooFewSlots(room.requests[0], items=3, slots=2, nodes=2)


def test_sums_are_of_nodes_that_are_left_and_take_an_item() -> None:
    room = room_of([[9], [9], [9], [2]], [[3], [4]])
    found = shortage(room, Loss((0,), 4), [Item(0), Item(1), Item(1), Item(1), Item(1)])
    assert found == TooLittle(resource=0, needed=19, headroom=18, items=5, nodes=2)


def test_items_that_go_to_few_nodes_are_counted_by_themselves() -> None:
    room = room_of([[9], [90]], [[5], [6]], allowed=[[1, 0], [1, 1]])
    found = shortage(room, Loss((), 2), [Item(0), Item(0), Item(1)])
    assert found == TooFewSlots(room.requests[0], items=2, slots=1, nodes=1)
