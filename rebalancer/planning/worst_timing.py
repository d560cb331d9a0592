"""The fullest that a node can get while moves are carried out, whatever their durations.

A move into the node may start once all that it waits for have ended, and some of those have left
the node. So the question is which arrivals to let start: each adds its request, and takes with it
the departures that it waits for, each of which counts once however many wait for it. That is the
closure of greatest weight in a graph, which a minimum cut gives without looking at every subset.

Source: J. C. Picard, Maximal Closure of a Graph and Applications to Combinatorial Problems,
Management Science 22 (1976).
"""

from collections import deque
from collections.abc import Mapping


def fullest(
    arrivals: Mapping[str, int], departures: Mapping[str, int], waits: Mapping[str, frozenset[str]]
) -> frozenset[str]:
    """The arrivals that may have started when arrivals less departures are at their greatest.

    `arrivals`, `departures`: amounts, not negative, by move. `waits`: for each arrival the
    departures that must have ended before it starts.
    """
    spare, capacity = dict(arrivals), dict(departures)
    paid = dict.fromkeys(((a, d) for a in arrivals for d in waits[a]), 0)
    while path := _augmenting_path(spare, capacity, waits, paid):
        # The path alternates: arrival, departure that it pays for, arrival that did before, ...
        payments = list(zip(path[::2], path[1::2], strict=True))
        refunds = list(zip(path[2::2], path[1::2], strict=False))
        amount = min(spare[path[0]], capacity[path[-1]], *(paid[each] for each in refunds))
        spare[path[0]] -= amount
        capacity[path[-1]] -= amount
        for each in payments:
            paid[each] += amount
        for each in refunds:
            paid[each] -= amount
    return frozenset(_reached(spare, waits, paid)) & frozenset(arrivals)


Paid = Mapping[tuple[str, str], int]


def _augmenting_path(
    spare: Mapping[str, int],
    capacity: Mapping[str, int],
    waits: Mapping[str, frozenset[str]],
    paid: Paid,
) -> list[str]:
    """The shortest from an arrival with something to spare to a departure not paid for yet."""
    came_from = _reached(spare, waits, paid)
    end = next((each for each in came_from if capacity.get(each, 0) > 0), None)
    path: list[str] = []
    while end is not None:
        path.append(end)
        end = came_from[end]
    return path[::-1]


def _reached(
    spare: Mapping[str, int], waits: Mapping[str, frozenset[str]], paid: Paid
) -> dict[str, str | None]:
    """What can be reached from arrivals with something to spare, nearest first, and from where."""
    came_from: dict[str, str | None] = dict.fromkeys(a for a in spare if spare[a] > 0)
    queue = deque(came_from)
    while queue:
        here = queue.popleft()
        if here in waits:
            beyond = sorted(waits[here])
        else:
            beyond = sorted(a for (a, d), amount in paid.items() if d == here and amount > 0)
        for each in beyond:
            if each not in came_from:
                came_from[each] = here
                queue.append(each)
    return came_from
