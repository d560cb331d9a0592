"""Tables as kubectl prints them, without lines; nothing is ever cut."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from rich.console import Console, ConsoleOptions, RenderableType
from rich.text import Text

from rebalancer.report.text import printable

_GAP = "  "
_LEAST_WIDTH = 24
"""Columns that the last cell is folded to at most; where it has less, rows become lists."""


def cell(text: str, style: str = "") -> Text:
    """Text in which nothing is markup and nothing acts on a terminal."""
    return Text(printable(text), style)


def spaced(blocks: Iterable[Iterable[RenderableType]]) -> Iterator[RenderableType]:
    """The blocks with an empty line between any two."""
    for number, block in enumerate(blocks):
        if number:
            yield Text()
        yield from block


class Labelled:
    """A text behind its label; where it is folded, it goes on below its beginning."""

    def __init__(self, label: Text, text: Text) -> None:
        self.label = label
        self.text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        width = max(options.max_width - self.label.cell_len, 1)
        label = self.label
        for line in self.text.wrap(console, width, overflow="fold") or [Text()]:
            joined = Text.assemble(label, line)
            joined.rstrip()
            yield joined
            label = Text(" " * self.label.cell_len)


class Rows:
    """A table whose last column is folded where it must be, the others never.

    Where they leave it too little room, each row is shown as a list of its cells instead, so
    that a narrow terminal shows all of them, and a pipe, which is never too narrow, one line
    for each row.
    """

    def __init__(self, *columns: str, right: Collection[str] = ()) -> None:
        """`right`: the columns of numbers."""
        self.columns = tuple(Text(name, "bold") for name in columns)
        self.right = frozenset(i for i, name in enumerate(columns) if name in right)
        self.rows: list[Sequence[Text]] = []

    def add(self, *cells: Text) -> None:
        self.rows.append(cells)

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> Iterator[Labelled]:
        table = (self.columns, *self.rows)
        widths = [max(cell.cell_len for cell in column) for column in zip(*table, strict=True)]
        taken = sum(widths[:-1]) + len(_GAP) * (len(widths) - 1)
        if options.max_width - taken < min(widths[-1], _LEAST_WIDTH):
            yield from self._lists()
            return
        for row in table:
            *first, last = (self._aligned(i, row[i], width) for i, width in enumerate(widths))
            yield Labelled(Text(_GAP).join([*first, Text()]), last)

    def _aligned(self, column: int, text: Text, width: int) -> Text:
        missing = " " * (width - text.cell_len)
        if column in self.right:
            return Text.assemble(missing, text)
        return text if column == len(self.columns) - 1 else Text.assemble(text, missing)

    def _lists(self) -> Iterator[Labelled]:
        width = max(name.cell_len for name in self.columns)
        for number, row in enumerate(self.rows):
            if number:
                yield Labelled(Text(), Text())
            for name, text in zip(self.columns, row, strict=True):
                missing = " " * (width - name.cell_len)
                yield Labelled(Text.assemble(name, missing, _GAP), text)
