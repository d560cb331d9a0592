"""The fullest that a node can get, against all that can happen."""

from itertools import chain, combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from rebalancer.planning.worst_timing import fullest

Case = tuple[dict[str, int], dict[str, int], dict[str, frozenset[str]]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    arrivals = {f"in{i}": draw(st.integers(0, 9)) for i in range(draw(st.integers(0, 6)))}
    departures = {f"out{i}": draw(st.integers(0, 9)) for i in range(draw(st.integers(0, 5)))}
    waits = {
        arrival: frozenset(d for d in departures if draw(st.booleans())) for arrival in arrivals
    }
    return arrivals, departures, waits


def fill(case: Case, started: frozenset[str]) -> int:
    arrivals, departures, waits = case
    ended = frozenset[str]().union(*(waits[each] for each in started))
    return sum(arrivals[each] for each in started) - sum(departures[each] for each in ended)


@settings(max_examples=500, deadline=None)
@given(cases())
def test_no_other_set_of_arrivals_fills_the_node_more(case: Case) -> None:
    arrivals = case[0]
    subsets = chain.from_iterable(combinations(arrivals, n) for n in range(len(arrivals) + 1))
    most = max(fill(case, frozenset(subset)) for subset in subsets)
    assert fill(case, fullest(*case)) == most


def test_arrivals_that_wait_for_the_same_departure_are_worth_it_only_together() -> None:
    waits = {"a": frozenset({"leaves"}), "b": frozenset({"leaves"})}
    assert fullest({"a": 3, "b": 3}, {"leaves": 5}, waits) == {"a", "b"}
    assert fullest({"a": 3, "b": 1}, {"leaves": 5}, waits) == frozenset()
