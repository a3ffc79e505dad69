"""Tables for a narrow terminal, and the same for a report."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.measure import Measurement
from rich.text import Text

from suffice.report.html import Section, figures, table, words

GAP = 2

AVERAGE = "average"
"""The block that a report shows where no pool is chosen."""


class Columns:
    """A table with a column of names and columns of figures.

    Titles of blocks take no part in how wide the names are, and a name that is too long has a line of its own.
    """

    def __init__(self, title: str, names: str, headings: Sequence[str], least: int = 14, gap: int = GAP) -> None:
        self._title, self._names, self._headings = title, names, headings
        self._least, self._gap = least, gap
        self._widths = [*map(_width, headings)]
        self._rows: list[tuple[Text, Sequence[str]]] = []

    def add_title(self, title: str) -> None:
        """Begin a block of rows."""
        self._rows.append((Text(title, "bold"), ()))

    def add_row(self, name: str | Text, *cells: str) -> None:
        """Add a row."""
        self._rows.append((name if isinstance(name, Text) else Text(name), cells))
        self._widths[: len(cells)] = map(max, self._widths, map(_width, cells))

    def section(self) -> Section:
        """Return the table of a report: a panel for each block, and one of the averages or else of all rows."""
        blocks: dict[str, list[list[Any]]] = {}
        block = ""
        for name, cells in self._rows:
            if cells:
                blocks.setdefault(block, []).append([name.plain.strip(), *map(_sortable, cells)])
            else:
                block = name.plain
        every = blocks.pop(AVERAGE, None)
        if every is None:
            titles = {block: f"{block}: " if len(blocks) > 1 else "" for block in blocks}
            every = [[titles[block] + row[0], *row[1:]] for block, rows in blocks.items() for row in rows]
        columns = [words(self._names)]
        columns += [figures(one.replace("-\n", "").replace("\n", " "), None) for one in self._headings]
        panels = [{"name": name, "rows": rows} for name, rows in {"": every, **blocks}.items()]
        return table(self._title, columns, panels)

    def _names_width(self, width: int) -> int:
        """The width of the column of names in a table of this width; no less than a name needs where it is short."""
        longest = max([self._least, _width(self._names), *(name.cell_len for name, cells in self._rows if cells)])
        return min(longest, max(self._least, width - self._gap - sum(one + self._gap for one in self._widths)))

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        figures = 1 + sum(one + self._gap for one in self._widths)
        return Measurement(figures + self._least, figures + self._names_width(options.max_width))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        wide = self._names_width(options.max_width)
        for part in Text(self._title, "table.title").wrap(console, options.max_width):
            part.rstrip()
            yield part
        heads = [one.split("\n") for one in (self._names, *self._headings)]
        tall = max(map(len, heads))
        yield Text()
        for first, *others in zip(*([""] * (tall - len(one)) + one for one in heads), strict=True):
            yield self._line(Text(first), others, wide, "bold")
        yield Text(" " + "─" * (wide + sum(one + self._gap for one in self._widths) + self._gap - 1))
        for place, (name, cells) in enumerate(self._rows):
            if not cells and place:
                yield Text()
            if not cells or name.cell_len > wide:
                yield Text(" ") + name
                name = Text()
            if cells:
                yield self._line(name, cells, wide)
        yield Text()

    def _line(self, name: Text, cells: Sequence[str], wide: int, style: str = "") -> Text:
        """A name and its figures, with no spaces at the end, which a narrow terminal would fold."""
        padded = [
            " " * (self._gap + width - cell_len(cell)) + cell for cell, width in zip(cells, self._widths, strict=False)
        ]
        line = Text.assemble(" ", name, " " * (wide - name.cell_len), *padded, style=style)
        line.rstrip()
        return line


def _width(text: str) -> int:
    return max(map(cell_len, text.split("\n")))


def _sortable(cell: str) -> str | list[Any]:
    """A cell of a report: with the number that it begins with, to sort by."""
    found = re.match(r"[+-]?[\d,]*\.?\d+", cell)
    if not found:
        return cell
    return [float(found[0].replace(",", "")) * (1000 if cell[found.end() :].startswith("k") else 1), cell]
