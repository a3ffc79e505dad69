"""Tables for a narrow terminal, and the same for a report."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.measure import Measurement
from rich.text import Text

from suffice.report.html import Section, figures, table, words
from suffice.report.markdown import shown

AVERAGE = "average"  # the block that a report shows where no pool is chosen


class Columns:
    """A column of names, and columns of figures by heading and format.

    Titles don't widen the names, and a name that is too long has a line of its own.
    """

    def __init__(self, title: str, names: str, figures: Mapping[str, str], least: int = 14, gap: int = 2) -> None:
        self._title, self._names, self._figures = title, names, figures
        self._least, self._gap = least, gap
        self._rows: list[tuple[Text, Sequence[str]]] = []

    def add_title(self, title: str) -> None:
        self._rows.append((Text(title, "bold"), ()))

    def add_row(self, name: str, *figures: float | str | None, style: str = "") -> None:
        """Add a row of numbers, in the formats of their columns, and texts."""
        cells = [shown(figure, places) for figure, places in zip(figures, self._figures.values(), strict=True)]
        self._rows.append((Text(name, style), cells))

    def section(self) -> Section:
        """The table of a report: a panel a block, and one of the averages or of all rows."""
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
        columns += [figures(one.replace("-\n", "").replace("\n", " "), None) for one in self._figures]
        panels = [{"name": name, "rows": rows} for name, rows in {"": every, **blocks}.items()]
        return table(self._title, columns, panels)

    def _widths(self, limit: int) -> list[int]:
        """The widths of the columns with their gaps; names have what figures leave of the limit."""
        columns = zip(self._figures, *(cells for _, cells in self._rows if cells), strict=True)
        wide = [self._gap + max(map(_width, column)) for column in columns]
        longest = max([self._least, _width(self._names), *(name.cell_len for name, cells in self._rows if cells)])
        return [min(longest, max(self._least, limit - self._gap - sum(wide))), *wide]

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(1 + sum(self._widths(0)), 1 + sum(self._widths(options.max_width)))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        for part in Text(self._title, "table.title").wrap(console, options.max_width):
            part.rstrip()
            yield part
        widths = self._widths(options.max_width)
        heads = [one.split("\n") for one in (self._names, *self._figures)]
        tall = max(map(len, heads))
        yield Text()
        for first, *others in zip(*([""] * (tall - len(one)) + one for one in heads), strict=True):
            yield _line(Text(first), others, widths, "bold")
        yield Text(" " + "─" * (sum(widths) + self._gap - 1))
        for place, (name, cells) in enumerate(self._rows):
            if not cells and place:
                yield Text()
            if not cells or name.cell_len > widths[0]:
                yield Text(" ") + name
                name = Text()
            if cells:
                yield _line(name, cells, widths)
        yield Text()


def _line(name: Text, cells: Sequence[str], widths: Sequence[int], style: str = "") -> Text:
    """A line with no spaces at its end, which a narrow terminal would fold."""
    padded = [" " * (width - cell_len(cell)) + cell for cell, width in zip(cells, widths[1:], strict=True)]
    line = Text.assemble(" ", name, " " * (widths[0] - name.cell_len), *padded, style=style)
    line.rstrip()
    return line


def _width(text: str) -> int:
    return max(map(cell_len, text.split("\n")))


def _sortable(cell: str) -> str | list[Any]:
    """A cell with the number that it begins with, to sort by."""
    found = re.match(r"[+-]?[\d,]*\.?\d+", cell)
    if not found:
        return cell
    return [float(found[0].replace(",", "")) * (1000 if cell[found.end() :].startswith("k") else 1), cell]
