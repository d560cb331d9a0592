from datetime import datetime, timedelta, timezone
from io import StringIO

import pytest

from rebalancer.cli.terminal import console
from rebalancer.execution.events import Event
from rebalancer.report.events import EventLines
from tests.builders import NOW
from tests.report.rendering import Terminal, TerminalStream


def lines(*events: Event) -> str:
    stream = StringIO()
    listener = EventLines(console(stream))
    for event in events:
        listener(event)
    return stream.getvalue()


def test_each_event_is_one_line() -> None:
    created = Event(NOW, "created", "default/db", "migration db-1 from worker-1 to worker-2")
    assert lines(created, Event(NOW, "hold-cleared", "x/hold-1", "was left over")) == (
        "2026-01-01T12:00:00Z created      default/db: migration db-1 from worker-1 to worker-2\n"
        "2026-01-01T12:00:00Z hold-cleared x/hold-1: was left over\n"
    )


def test_times_are_in_utc_wherever_they_come_from() -> None:
    berlin = timezone(timedelta(hours=2))
    at = datetime(2026, 6, 1, 0, 30, tzinfo=berlin)
    assert lines(Event(at, "bound", "default/db", "")).startswith("2026-05-31T22:30:00Z ")


def test_long_message_stays_one_line_in_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    Terminal(monkeypatch, 60)
    stream = TerminalStream()
    EventLines(console(stream))(Event(NOW, "failed", "default/db", "word " * 100))
    assert stream.getvalue().count("\n") == 1


def test_colour_of_the_code_tells_good_from_bad(monkeypatch: pytest.MonkeyPatch) -> None:
    Terminal(monkeypatch, 60)
    stream = TerminalStream()
    listener = EventLines(console(stream))
    listener(Event(NOW, "bound", "default/db", "is bound"))
    listener(Event(NOW, "failed", "default/db", "no answer"))
    good, bad = stream.getvalue().splitlines()
    assert (
        good
        == "\x1b[2m2026-01-01T12:00:00Z \x1b[0m\x1b[1;32mbound        \x1b[0mdefault/db: is bound"
    )
    assert "\x1b[1;31mfailed" in bad
