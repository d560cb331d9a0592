"""How long moves take together under the limits on migrations, and which come first."""

from hypothesis import given, settings
from hypothesis import strategies as st

from rebalancer.model.objects import MigrationConfiguration
from rebalancer.model.plan import Cost, Move
from rebalancer.planning.timetable import (
    MigrationLimits,
    estimated_seconds,
    migration_limits,
    start_order,
    timetable,
)
from rebalancer.policy.model import BudgetPolicy
from tests.builders import key

LIMITS = MigrationLimits(per_cluster=5, outbound_per_node=2, inbound_per_node=2)


def move(name: str, route: str, seconds: float, *after: str) -> Move:
    source, target = route.split(" to ")
    return Move(name, key(name), f"vmi-{name}", source, target, 1, seconds, Cost({}), after)


def test_nothing_takes_no_time() -> None:
    assert estimated_seconds([], LIMITS) == 0


def test_a_move_starts_when_those_it_waits_for_have_ended() -> None:
    moves = [
        move("a", "n1 to n2", 10),
        move("b", "n2 to n3", 30),
        move("c", "n3 to n1", 5, "a", "b"),
    ]
    assert timetable(moves, LIMITS) == {"a": (0, 10), "b": (0, 30), "c": (30, 35)}


def test_what_one_node_may_not_send_yet_does_not_keep_the_others_waiting() -> None:
    moves = [move(f"a{i}", f"n1 to m{i}", 10) for i in range(3)] + [move("b", "n2 to m4", 10)]
    times = timetable(moves, LIMITS._replace(outbound_per_node=1))
    assert times == {"a0": (0, 10), "b": (0, 10), "a1": (10, 20), "a2": (20, 30)}


def test_sources_take_turns_where_the_cluster_has_few_places() -> None:
    moves = [move(f"a{i}", f"n1 to m{i}", 10) for i in range(2)]
    moves += [move(f"b{i}", f"n2 to m{i}", 10) for i in range(2)]
    assert [each.id for each in start_order(moves, moves)] == ["a0", "b0", "a1", "b1"]
    assert estimated_seconds(moves, LIMITS._replace(per_cluster=2, outbound_per_node=1)) == 20


def test_what_the_longest_chain_waits_for_goes_first() -> None:
    moves = [
        move("large", "n1 to n2", 30),
        move("small", "n3 to n4", 10),
        move("next", "n4 to n5", 40, "small"),
    ]
    limits = LIMITS._replace(per_cluster=1)
    assert [each.id for each in start_order(moves[:2], moves)] == ["small", "large"]
    assert estimated_seconds(moves, limits) == 80


def test_the_lower_of_two_limits_counts() -> None:
    kubevirt = MigrationConfiguration(
        parallel_migrations_per_cluster=3, parallel_outbound_migrations_per_node=2
    )
    policy = BudgetPolicy(max_in_flight_per_cluster=4, max_outbound_per_node=1)
    assert migration_limits(policy, kubevirt) == MigrationLimits(3, 1, 2)


def test_a_kubevirt_cr_that_allows_no_migrations_is_estimated_all_the_same() -> None:
    moves = [move("a", "n1 to n2", 10), move("b", "n3 to n4", 10)]
    assert estimated_seconds(moves, MigrationLimits(0, 0, 2)) == 20


@st.composite
def plans(draw: st.DrawFn) -> list[Move]:
    moves: list[Move] = []
    for number in range(draw(st.integers(1, 8))):
        source, target = draw(st.permutations(["n1", "n2", "n3", "n4"]))[:2]
        after = [each.id for each in moves if draw(st.integers(0, 3)) == 0]
        seconds = draw(st.integers(0, 9))
        moves.append(move(f"vm{number}", f"{source} to {target}", seconds, *after))
    return moves


@settings(max_examples=200, deadline=None)
@given(plans(), st.integers(1, 4), st.integers(1, 2), st.integers(1, 2))
def test_no_limit_is_ever_exceeded_and_no_place_left_empty_for_nothing(
    moves: list[Move], cluster: int, outbound: int, inbound: int
) -> None:
    limits = MigrationLimits(cluster, outbound, inbound)
    times = timetable(moves, limits)
    assert times.keys() == {each.id for each in moves}
    for each in moves:
        start, _ = times[each.id]
        assert all(times[earlier][1] <= start for earlier in each.after)
        running = [m for m in moves if times[m.id][0] <= start < times[m.id][1]]
        assert len(running) <= cluster
        assert sum(m.source == each.source for m in running) <= outbound
        assert sum(m.target == each.target for m in running) <= inbound
    busy = sum(each.seconds for each in moves)
    chain = max(end for _, end in times.values())
    assert busy / cluster <= chain <= busy
