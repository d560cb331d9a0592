"""An integer program as plain data: what a model states and a solver answers."""

from collections.abc import Iterable
from typing import NamedTuple


class Row(NamedTuple):
    """lower <= sum of coefficient * variable <= upper."""

    terms: tuple[tuple[int, int], ...]
    """(variable, coefficient)"""
    lower: int
    upper: int


class IntegerProgram:
    """Variables are numbered from 0; each is whole, from 0 up to its upper limit."""

    def __init__(self) -> None:
        self.upper: list[int] = []
        self.cost: list[int] = []
        self.rows: list[Row] = []

    def variable(self, upper: int, cost: int = 0) -> int:
        self.upper.append(upper)
        self.cost.append(cost)
        return len(self.upper) - 1

    def at_most(self, terms: Iterable[tuple[int, int]], upper: int) -> None:
        self.rows.append(Row(tuple(terms), -UNLIMITED, upper))

    def at_least(self, terms: Iterable[tuple[int, int]], lower: int) -> None:
        self.rows.append(Row(tuple(terms), lower, UNLIMITED))

    def equal(self, terms: Iterable[tuple[int, int]], value: int) -> None:
        self.rows.append(Row(tuple(terms), value, value))

    def objective(self) -> list[tuple[int, int]]:
        return [(var, cost) for var, cost in enumerate(self.cost) if cost]


UNLIMITED = 2**62
"""Stands for no limit of a row."""
