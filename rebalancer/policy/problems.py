"""What is wrong with a policy, all of it at once and each with its place."""

from collections.abc import Iterable
from difflib import get_close_matches

from msgspec import Struct

from rebalancer.errors import InputError


class Problem(Struct, frozen=True):
    """One mistake: in a file, in environment variables, or in how the two go together."""

    message: str
    """What is wrong and what is allowed, in words."""
    key: str = ""
    """Path of the key, such as `execution.budget.maxPerCycle`; empty if it is about no key."""
    file: str | None = None
    line: int | None = None
    """Counted from 1."""
    variables: tuple[str, ...] = ()
    allowed: str = ""
    """Type and range, or the possible values."""
    suggestion: str = ""
    """The nearest name that exists, if the one given does not."""

    def __str__(self) -> str:
        origins = [f"{self.file}:{self.line}" if self.line else self.file or "", *self.variables]
        where = " and ".join(filter(None, origins))
        return ": ".join(filter(None, [where, self.key, self.message]))


class PolicyError(InputError):
    """A policy cannot be used; its text has one line for each problem."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


def nearest(name: str, names: Iterable[str]) -> str:
    """The name most like this one, or an empty string if none is like it."""
    return next(iter(get_close_matches(name, names, n=1)), "")
