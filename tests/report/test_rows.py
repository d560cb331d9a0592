from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from rebalancer.report.rows import Rows, cell
from tests.report.rendering import Terminal, piped

CELLS = st.text(max_size=40)
TABLES = st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=5)


def rows_of(*table: tuple[str, ...], right: tuple[str, ...] = ()) -> Rows:
    rows = Rows("NAME", "NUMBER", "WHY", right=right)
    for row in table:
        rows.add(*map(cell, row))
    return rows


def characters(text: str) -> Counter[str]:
    return Counter(text.replace(" ", "").replace("\n", ""))


def test_numbers_are_aligned_at_their_ends_and_texts_at_their_beginnings() -> None:
    rows = rows_of(("a", "1", "x"), ("long-name", "1000", "y"), right=("NUMBER",))
    assert piped([rows]) == (
        "NAME       NUMBER  WHY\n"
        "a               1  x\n"
        "long-name    1000  y\n"
    )  # fmt: skip


def test_wide_characters_take_two_columns() -> None:
    assert piped([rows_of(("語", "1", "x"), ("ab", "2", "y"))]) == (
        "NAME  NUMBER  WHY\n"
        "語    1       x\n"
        "ab    2       y\n"
    )  # fmt: skip


def test_last_column_is_folded_below_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_of(("worker-1", "1", "memory: needs more than there is"))
    assert Terminal(monkeypatch, 44).text([rows]) == (
        "NAME      NUMBER  WHY\n"
        "worker-1  1       memory: needs more than\n"
        "                  there is\n"
    )


def test_rows_become_lists_where_a_line_would_have_to_break_a_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    why = "memory: needs more than there is"
    rows = rows_of(("worker-1", "1", why), ("worker-2", "2", ""))
    assert Terminal(monkeypatch, 40).text([rows]) == (
        "NAME    worker-1\n"
        "NUMBER  1\n"
        "WHY     memory: needs more than there is\n"
        "\n"
        "NAME    worker-2\n"
        "NUMBER  2\n"
        "WHY\n"
    )


@given(TABLES)
def test_pipe_gets_one_line_for_each_row_without_spaces_at_its_end(
    table: list[tuple[str, ...]],
) -> None:
    lines = piped([rows_of(*table)]).splitlines()
    assert len(lines) == 1 + len(table)
    assert all(line == line.rstrip() for line in lines)


@given(TABLES, st.integers(12, 120))
def test_no_width_loses_a_character(table: list[tuple[str, ...]], width: int) -> None:
    console = Console(width=width, color_system=None, markup=False, highlight=False)
    with console.capture() as capture:
        console.print(rows_of(*table))
    wanted = characters("".join(cell(part).plain for row in table for part in row))
    assert wanted <= characters(capture.get())


@given(TABLES, st.integers(12, 120))
def test_no_line_is_wider_than_the_terminal(table: list[tuple[str, ...]], width: int) -> None:
    console = Console(width=width, color_system=None, markup=False, highlight=False)
    with console.capture() as capture:
        console.print(rows_of(*table))
    assert all(cell_len(line) <= width for line in capture.get().splitlines())
