"""What a test or a demo wants to go otherwise than well."""

from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, NamedTuple

from msgspec import Struct

from rebalancer.model.objects import ObjectKey


class Succeed(Struct, frozen=True):
    """The migration ends well, as it does where nothing is scripted."""


class Fail(Struct, frozen=True):
    """The migration fails once the copying is done."""

    reason: str = ""


class Stall(Struct, frozen=True):
    """The migration stays Running until it is released, and then succeeds."""


Outcome = Succeed | Fail | Stall


class Outcomes:
    """How the next migrations of each VM end, in order."""

    def __init__(self) -> None:
        self._next: dict[ObjectKey, deque[Outcome]] = defaultdict(deque)

    def add(self, vmi: ObjectKey, *outcomes: Outcome) -> None:
        self._next[vmi].extend(outcomes)

    def take(self, vmi: ObjectKey) -> Outcome:
        scripted = self._next[vmi]
        return scripted.popleft() if scripted else Succeed()


Request = Literal[
    "read",
    "reread",
    "create_migration",
    "create_hold",
    "delete_hold",
    "create_event",
    "wait_for_change",
]


class _Fault(NamedTuple):
    error: Exception
    after_effect: bool


class Faults:
    """Errors that the next requests are answered with."""

    def __init__(self) -> None:
        self._next: dict[Request, deque[_Fault]] = defaultdict(deque)

    def add(self, request: Request, error: Exception, *, after_effect: bool) -> None:
        self._next[request].append(_Fault(error, after_effect))

    @contextmanager
    def around(self, request: Request) -> Iterator[None]:
        """Raises the request's next error before or after the body."""
        faults = self._next[request]
        fault = faults.popleft() if faults else None
        if fault and not fault.after_effect:
            raise fault.error
        yield
        if fault:
            raise fault.error
