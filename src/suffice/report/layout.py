"""How tables are laid out so that they fit a narrow terminal: names fold, figures don't, and titles cross columns."""

from collections.abc import Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

FIRST_MARK = 0xF0000
"""The first of the characters, all of private use, that stand for titles while a table is laid out."""

EDGE = 1
"""The right edge, which is left out."""


class Columns:
    """A table with a column of names, which fold where they must, and columns of figures.

    Titles of blocks take no part in how wide the names are; spaces at the ends of lines, which a narrow terminal would
    fold, are left out.
    """

    def __init__(self, title: str, names: str, headings: Sequence[str], least: int = 14, gap: int = 2) -> None:
        self._title = title
        self._titles: list[Text] = []
        self._gap = gap
        self._table = Table(box=SIMPLE_HEAD, padding=(0, gap - 1, 0, 0))
        self._table.add_column(names, overflow="fold", min_width=least)
        for heading in headings:
            self._table.add_column(heading, justify="right", no_wrap=True, min_width=_width(heading))

    def add_title(self, title: str) -> None:
        """Begin a block of rows."""
        self._table.add_section()
        self._table.add_row(chr(FIRST_MARK + len(self._titles)))
        self._titles.append(Text(f" {title}", "bold"))

    def add_row(self, name: str | Text, *figures: str) -> None:
        """Add a row."""
        self._table.add_row(name if isinstance(name, Text) else Text(name), *figures)
        for column, figure in zip(self._table.columns[1:], figures, strict=False):
            column.min_width = max(column.min_width or 0, _width(figure))

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        needed = 1 + sum((column.min_width or 0) + self._gap for column in self._table.columns)
        return Measurement(needed - EDGE, Measurement.get(console, options, self._table).maximum - EDGE)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text | Segment]:
        if self._title:  # not the table's own, which is cut where the table ends
            for part in Text(self._title, "table.title").wrap(console, options.max_width):
                part.rstrip()
                yield part
        options = options.update(width=options.max_width + EDGE)
        for line in console.render_lines(self._table, options, pad=False):
            marks = [ord(one) - FIRST_MARK for segment in line for one in segment.text if ord(one) >= FIRST_MARK]
            if marks and marks[0] < len(self._titles):
                yield self._titles[marks[0]]
                continue
            while line and not line[-1].text.strip():
                line.pop()
            yield from line[:-1]
            if line:
                yield Segment(line[-1].text.rstrip(), line[-1].style)
            yield Segment.line()


def _width(text: str) -> int:
    return max(map(cell_len, text.split("\n")))
