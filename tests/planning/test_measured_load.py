"""Nodes are judged by readings over a while; what cannot be judged is left out, with the reason."""

from collections.abc import Sequence
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rebalancer.model.measured_load import MeasuredLoad, Reading
from rebalancer.planning.measured_load import NodeLoad, NodeLoads, node_loads
from rebalancer.policy.measured_load import MeasuredLoadPolicy
from tests.builders import NOW, cluster, node

MINUTELY = MeasuredLoadPolicy(window_seconds=600, step_seconds=60, hot_after_readings=3)
SHARES = st.floats(0, 1)


def readings(shares: Sequence[float], last_seconds_ago: float = 0) -> tuple[Reading, ...]:
    """One a minute, oldest first."""
    ages = range(60 * (len(shares) - 1), -60, -60)
    return tuple(
        Reading(NOW - timedelta(seconds=age + last_seconds_ago), share)
        for age, share in zip(ages, shares, strict=True)
    )


def judged(load: MeasuredLoad | None, policy: MeasuredLoadPolicy = MINUTELY) -> NodeLoads:
    """Of a cluster with the nodes n1 and n2."""
    return node_loads(replace(cluster(node("n1"), node("n2")), measured_load=load), policy)


def of_n1(measured: tuple[Reading, ...]) -> NodeLoads:
    usual = readings([0.5, 0.5, 0.5])
    return judged(MeasuredLoad(NOW, "cpu", readings={"n1": measured, "n2": usual}))


def test_share_is_the_mean_of_the_window() -> None:
    load = of_n1(readings([0.1, 0.2, 0.9, 0.8])).by_node["n1"]
    assert load.share == pytest.approx(0.5)
    assert load.latest == (0.2, 0.9, 0.8)


@pytest.mark.parametrize(
    ("shares", "is_hot"),
    [
        ([0.9, 0.9, 0.9], True),
        ([0.1, 0.1, 0.1, 0.9, 0.9, 0.9], True),
        ([0.9, 0.9, 0.9, 0.9, 0.9, 0.7], False),
        ([0.9, 0.9, 0.9, 0.7, 0.9, 0.9], False),
        ([0.1, 0.1, 1.0], False),
        ([0.8, 0.8, 0.8], False),
    ],
    ids=["always", "since a while", "no more", "with a pause", "a peak", "just at the threshold"],
)
def test_node_is_hot_only_when_all_of_the_latest_readings_are_above(
    shares: list[float], is_hot: bool
) -> None:
    assert of_n1(readings(shares)).by_node["n1"].is_hot(0.8) is is_hot


@pytest.mark.parametrize(
    ("shares", "last_seconds_ago", "is_under_pressure"),
    [
        ([0.3, 0.2, 0.3], 0, True),
        ([0.3, 0.1, 0.3], 0, False),
        ([0.3, 0.3], 0, False),
        ([0.3, 0.3, 0.3], 121, False),
        ([], 0, False),
    ],
    ids=["always", "with a pause", "too few", "stale", "not measured"],
)
def test_pressure_is_judged_by_the_same_readings_and_leaves_no_node_out(
    shares: list[float], last_seconds_ago: float, *, is_under_pressure: bool
) -> None:
    usual = {"n1": readings([0.5, 0.5, 0.5])}
    pressure = {"n1": readings(shares, last_seconds_ago)}
    load = judged(MeasuredLoad(NOW, "cpu", usual, pressure)).by_node["n1"]
    assert load.is_under_pressure(0.1) is is_under_pressure


@pytest.mark.parametrize(
    ("measured", "code", "message"),
    [
        ((), "no-readings", "no reading within 600 s"),
        (
            readings([0.9, 0.9]),
            "few-readings",
            "2 readings within 600 s; it takes 3 to judge",
        ),
        (
            readings([0.9, 0.9, 0.9], last_seconds_ago=121),
            "stale-readings",
            "the last reading is 121 s old",
        ),
    ],
)
def test_node_without_enough_fresh_readings_is_left_out_with_the_reason(
    measured: tuple[Reading, ...], code: str, message: str
) -> None:
    loads = of_n1(measured)
    assert [(r.code, r.node, r.message) for r in loads.left_out] == [(code, "n1", message)]
    assert list(loads.by_node) == ["n2"]


def test_reading_may_be_two_steps_late() -> None:
    assert "n1" in of_n1(readings([0.9, 0.9, 0.9], last_seconds_ago=120)).by_node


def test_node_that_was_measured_wrongly_is_left_out_with_that_reason() -> None:
    load = MeasuredLoad(
        NOW, "cpu", readings={"n2": readings([0.5] * 3)}, left_out={"n1": "two series"}
    )
    [reason] = judged(load).left_out
    assert (reason.code, reason.node, reason.message) == ("unusable-readings", "n1", "two series")


@pytest.mark.parametrize(
    ("load", "code"),
    [
        (None, "load-not-measured"),
        (MeasuredLoad(NOW, "cpu", problem="no answer"), "load-missing"),
    ],
)
def test_where_nothing_was_measured_no_node_is_judged(load: MeasuredLoad | None, code: str) -> None:
    loads = judged(load)
    assert loads.by_node == {}
    assert [reason.code for reason in loads.left_out] == [code]


@given(st.lists(SHARES, min_size=3, max_size=11), SHARES)
def test_share_lies_between_the_readings_and_hot_means_none_of_the_latest_is_lower(
    shares: list[float], threshold: float
) -> None:
    load = of_n1(readings(shares)).by_node["n1"]
    rounding = 1e-12
    assert min(shares) - rounding <= load.share <= max(shares) + rounding
    assert load.is_hot(threshold) == (not any(share <= threshold for share in shares[-3:]))


@given(st.lists(SHARES, min_size=1, max_size=5), SHARES, SHARES)
def test_what_is_hot_stays_hot_under_a_lower_threshold(
    latest: list[float], one: float, other: float
) -> None:
    load = NodeLoad(share=latest[0], latest=tuple(latest))
    lower, higher = sorted((one, other))
    assert load.is_hot(lower) or not load.is_hot(higher)


@given(st.dictionaries(st.sampled_from(["n1", "n2", "gone"]), st.lists(SHARES, max_size=6)))
def test_every_node_is_either_judged_or_left_out_with_a_reason(
    measured: dict[str, list[float]],
) -> None:
    loads = judged(MeasuredLoad(NOW, "cpu", readings={n: readings(s) for n, s in measured.items()}))
    assert sorted([*loads.by_node, *(r.node for r in loads.left_out)]) == ["n1", "n2"]
