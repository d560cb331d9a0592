"""Small problems of placing items, and what trying every assignment says of them."""

from itertools import product
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from rebalancer.headroom.room import Item, Loss, Room, Term


class Problem(NamedTuple):
    room: Room
    loss: Loss
    items: list[Item]
    terms: list[Term]


def room_of(
    headroom: list[list[int]],
    requests: list[list[int]],
    allowed: list[list[int]] | None = None,
    terms: tuple[Term, ...] = (),
) -> Room:
    """One mask for each kind; without any, every kind may go everywhere."""
    masks = np.array(allowed or np.ones((1, len(headroom))), np.bool_)
    rows = np.array(headroom, np.int64)
    return Room(
        headroom=rows,
        allocatable=rows,
        requests=np.array(requests, np.int64),
        allowed=list(masks),
        allowed_of=range(len(requests)) if allowed else [0] * len(requests),
        term=terms.__getitem__,
    )


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Up to four nodes, two resources, five items; hosts and zones that keep items apart."""
    count = draw(st.integers(1, 4))
    amount = st.integers(0, 4)
    headroom = [draw(st.lists(st.integers(-1, 6), min_size=2, max_size=2)) for _ in range(count)]
    flags = st.lists(st.sampled_from((0, 1, 1, 1)), min_size=count, max_size=count)
    kinds = draw(st.integers(1, 3))
    requests = [[draw(st.integers(1, 3)), draw(amount)] for _ in range(kinds)]
    some_nodes = st.lists(st.integers(0, count - 1), max_size=1)
    hosts = list(range(count))
    terms = [
        Term(
            draw(st.sampled_from((hosts, [node // 2 for node in hosts], [-1, *hosts[:-1]]))),
            np.array(draw(some_nodes), np.int64),
            np.array(draw(some_nodes), np.int64),
        )
        for _ in range(2)
    ]
    some_terms = st.sampled_from(((), (), (0,), (1,), (0, 1)))
    items = [
        Item(draw(st.integers(0, kinds - 1)), draw(some_terms), draw(some_terms))
        for _ in range(draw(st.integers(1, 5)))
    ]
    room = room_of(headroom, requests, [draw(flags) for _ in range(kinds)], tuple(terms))
    loss = Loss(draw(st.lists(st.integers(0, count - 1), max_size=1)), count)
    return Problem(room, loss, items, terms)


def is_placing(problem: Problem, nodes: tuple[int, ...]) -> bool:
    """Whether each item may be on its node, all of them being there."""
    room, loss, items, terms = problem
    needed = np.zeros_like(room.headroom)
    for item, node in zip(items, nodes, strict=True):
        needed[node] += room.requests[item.kind]
        if node in loss.nodes or not room.allowed(item.kind)[node]:
            return False
    if ((needed > room.headroom) & (needed > 0)).any():
        return False
    for number, (domain, holders, meant) in enumerate(terms):
        old_holders = {domain[node] for node in holders.tolist() if node not in loss.nodes}
        old_meant = {domain[node] for node in meant.tolist() if node not in loss.nodes}
        for i, item in enumerate(items):
            others = [(items[j], domain[nodes[j]]) for j in range(len(items)) if j != i]
            there = old_meant | {at for other, at in others if number in other.meant}
            holding = old_holders | {at for other, at in others if number in other.holds}
            at = domain[nodes[i]]
            if number in item.holds and at in there - {-1}:
                return False
            if number in item.meant and at in holding - {-1}:
                return False
    return True


def has_placing(problem: Problem) -> bool:
    nodes = range(problem.room.node_count)
    return any(is_placing(problem, each) for each in product(nodes, repeat=len(problem.items)))
