"""Virtual time, and what is to happen when."""

import heapq
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import count

Action = Callable[[], None]
Pace = Callable[[float], None]
"""Told how many virtual seconds are about to pass; may block for as long as it likes."""


def no_pace(_seconds: float) -> None:
    """Virtual time passes at once."""


class Agenda:
    """Actions in the order of their times; those of one instant in the order of their entry."""

    def __init__(self, start: datetime, pace: Pace = no_pace) -> None:
        self.now = start
        self._pace = pace
        self._numbers = count()
        self._due: list[tuple[datetime, int, Action]] = []
        self._known: set[tuple[str, str]] = set()

    def after(self, seconds: float, action: Action) -> None:
        due = self.now + timedelta(seconds=seconds)
        heapq.heappush(self._due, (due, next(self._numbers), action))

    def once(self, uid: str, stage: str, seconds: float, action: Action) -> None:
        """As `after`, for the first time that this stage of that object is met."""
        if (uid, stage) not in self._known:
            self._known.add((uid, stage))
            self.after(seconds, action)

    def run_next(self, until: datetime) -> bool:
        """Passes to the next action that is due by then and carries it out, or just to `until`.

        Returns whether there was one.
        """
        if not self._due or self._due[0][0] > until:
            self._pass_to(until)
            return False
        due, _, action = heapq.heappop(self._due)
        self._pass_to(due)
        action()
        return True

    def _pass_to(self, moment: datetime) -> None:
        if moment > self.now:
            self._pace((moment - self.now).total_seconds())
            self.now = moment
