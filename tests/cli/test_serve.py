"""`rebalancer serve`: when cycles start, and that nothing but a signal ends it."""

import signal
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from threading import Event as Flag
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.cli.serve import run_on_schedule, trigger
from rebalancer.cluster.protocols import Cluster
from rebalancer.cluster.request_scenario import request_cluster
from rebalancer.cluster.simulated import SimulatedCluster
from rebalancer.errors import ClusterError, InputError
from rebalancer.policy.model import SchedulePolicy
from tests.cli.clusters import FailingCluster, StandbyCluster
from tests.cli.command import Cli

UseCluster = Callable[[Cluster], None]
START = datetime(2026, 3, 2, 9, 0, 30, tzinfo=UTC)
"""A Monday."""


class FakeTime(Flag):
    """A clock, and a flag that lets the time pass which is waited for; it is set at the end."""

    def __init__(self, until: datetime) -> None:
        super().__init__()
        self.time = START
        self.until = until

    def now(self) -> datetime:
        return self.time

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.time += timedelta(seconds=max(timeout, 0))
        return self.time >= self.until


def starts(
    schedule: SchedulePolicy,
    during: timedelta,
    cycle_seconds: float = 0,
) -> list[datetime]:
    """When cycles start that take so long."""
    clock = FakeTime(START + during)
    found = []

    def cycle() -> None:
        found.append(clock.time)
        clock.time += timedelta(seconds=cycle_seconds)

    run_on_schedule(cycle, schedule, clock, clock.now)
    return found


def seconds(times: list[datetime]) -> list[float]:
    return [(time - START).total_seconds() for time in times]


def every(interval_seconds: int, jitter_seconds: int = 0) -> SchedulePolicy:
    return SchedulePolicy(interval_seconds=interval_seconds, jitter_seconds=jitter_seconds)


def cron(text: str, time_zone: str = "UTC", jitter_seconds: int = 0) -> SchedulePolicy:
    return SchedulePolicy(cron=text, time_zone=time_zone, jitter_seconds=jitter_seconds)


def test_interval_begins_at_once() -> None:
    assert seconds(starts(every(60), timedelta(minutes=4))) == [0, 60, 120, 180]


def test_cycles_that_take_longer_than_the_interval_do_not_pile_up() -> None:
    assert seconds(starts(every(60), timedelta(minutes=8), cycle_seconds=130)) == [0, 180, 360]


def test_cycle_that_ends_when_the_next_is_due_is_not_followed_twice() -> None:
    assert seconds(starts(every(60), timedelta(minutes=5), cycle_seconds=60)) == [0, 120, 240]


def test_cron_does_not_begin_before_its_time() -> None:
    """A restart in the day must not migrate anything if cycles are for the night."""
    nightly = starts(cron("30 2 * * *"), timedelta(days=2))
    assert nightly == [datetime(2026, 3, day, 2, 30, tzinfo=UTC) for day in (3, 4)]


def test_cron_time_that_is_past_by_less_than_a_minute_is_left_to_the_next() -> None:
    assert starts(cron("* * * * *"), timedelta(minutes=2))[0].minute == 1


def test_cron_is_in_its_time_zone_through_the_change_of_the_clocks() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    times = starts(cron("0 4 * * sat,sun", "Europe/Berlin"), timedelta(days=28))
    assert {time.astimezone(berlin).hour for time in times} == {4}
    assert {time.astimezone(UTC).hour for time in times} == {2, 3}
    assert {time.weekday() for time in times} == {5, 6}


def test_jitter_delays_each_start_by_less_than_it_says_and_differently() -> None:
    delays = [s % 60 for s in seconds(starts(every(60, 20), timedelta(hours=2)))]
    assert all(0 <= delay <= 20 for delay in delays)
    assert len(set(delays)) > 100
    delayed = starts(cron("0 * * * *", jitter_seconds=20), timedelta(days=2))
    assert all(time.minute == 0 and time.second <= 20 for time in delayed)
    assert len({time.microsecond for time in delayed}) > 40


def test_clock_that_is_set_back_does_not_bring_a_time_again() -> None:
    clock = FakeTime(START + timedelta(hours=3))
    found = []

    def cycle() -> None:
        found.append(clock.time)
        if len(found) == 1:
            clock.time -= timedelta(seconds=1)

    run_on_schedule(cycle, cron("0 * * * *"), clock, clock.now)
    assert [time.hour for time in found] == [10, 11, 12]


@given(
    st.one_of(
        st.builds(every, st.integers(10, 600), st.integers(0, 9)),
        st.builds(cron, st.sampled_from(["* * * * *", "*/7 9-12 * * *"]), st.just("Asia/Kolkata")),
    ),
    st.floats(0, 1000),
)
def test_cycles_never_overlap(schedule: SchedulePolicy, cycle_seconds: float) -> None:
    times = starts(schedule, timedelta(hours=2), cycle_seconds)
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert all(gap >= timedelta(seconds=cycle_seconds) and gap > timedelta(0) for gap in gaps)


def test_trigger_takes_cron_before_the_interval() -> None:
    both = SchedulePolicy(interval_seconds=10, cron="0 4 * * *", jitter_seconds=0)
    due = trigger(both, START).get_next_fire_time(None, START)
    assert due == datetime(2026, 3, 3, 4, tzinfo=UTC)


# The command


@pytest.fixture
def cycles(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Has `serve` run that many cycles at once and then be told to stop."""

    def at_once(count: int) -> None:
        def run_them(cycle: Callable[[], None], *_: Any) -> None:
            for _number in range(count):
                cycle()

        monkeypatch.setattr("rebalancer.cli.serve.run_on_schedule", run_them)

    return at_once


def test_serve_makes_room_and_then_has_nothing_to_do(
    cli: Cli, use_cluster: UseCluster, cycles: Callable[[int], None]
) -> None:
    use_cluster(request_cluster())
    cycles(2)
    done = cli("serve")
    assert (done.code, done.stdout) == (0, "")
    assert done.stderr.count(" bound        ") == 1
    assert done.stderr.count(" planned      ") == 2
    assert done.stderr.endswith("stopped      serve: was told to stop\n")


@pytest.mark.parametrize(
    "error", [ClusterError("list pods: no answer"), InputError("Pod x/y: cannot be read")]
)
def test_cycle_that_fails_is_told_and_does_not_end_serve(
    cli: Cli, use_cluster: UseCluster, cycles: Callable[[int], None], error: Exception
) -> None:
    use_cluster(FailingCluster(error))
    cycles(3)
    done = cli("serve")
    assert done.code == 0
    assert done.stderr.count(f"failed       cycle: {error}\n") == 3
    assert "Traceback" not in done.stderr


def test_bug_is_told_with_its_traceback_and_does_not_end_serve(
    cli: Cli,
    use_cluster: UseCluster,
    cycles: Callable[[int], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    use_cluster(FailingCluster(ZeroDivisionError("division by zero")))
    cycles(2)
    done = cli("serve")
    assert done.code == 0
    assert done.stderr.count("failed       cycle: ZeroDivisionError('division by zero')\n") == 2
    assert [record.exc_info is not None for record in caplog.records] == [True, True]


def test_replica_that_does_not_lead_stands_by(
    cli: Cli, use_cluster: UseCluster, cycles: Callable[[int], None]
) -> None:
    use_cluster(StandbyCluster())
    cycles(1)
    done = cli("serve")
    assert done.code == 0
    assert "standby      cycle: other_1 holds the Lease x/kubevirt-rebalancer\n" in done.stderr
    assert "failed" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_serve_in_order(
    cli: Cli, use_cluster: UseCluster, number: signal.Signals
) -> None:
    class Told(SimulatedCluster):
        def read(self) -> Any:
            signal.raise_signal(number)
            return super().read()

    use_cluster(Told(request_cluster().read()))
    cli.monkeypatch.setenv("REBALANCER_SCHEDULE__JITTER_SECONDS", "0")
    done = cli("serve")
    assert done.code == 0
    assert done.stderr.endswith("stopped      serve: was told to stop\n")
