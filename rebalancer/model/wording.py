"""Numbers and names in sentences."""

from collections.abc import Sequence

_MAX_NAMES = 5


def count_of(count: int, noun: str) -> str:
    """Such as "1 migration" or "2 migrations"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def first_few(things: Sequence[object]) -> str:
    """The first of them by name, and how many more there are."""
    named = ", ".join(str(thing) for thing in things[:_MAX_NAMES])
    more = len(things) - _MAX_NAMES
    return f"{named} and {more} more" if more > 0 else named
