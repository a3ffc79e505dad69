"""Tables for a narrow terminal, where names fold, figures don't and titles cross columns; and the same for a report."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from suffice.report.html import Section, figures, table, words

FIRST_MARK = 0xF0000
"""The first of the characters, all of private use, that stand for titles while a table is laid out."""

EDGE = 1
"""The right edge, which is left out."""

GAP = 2

AVERAGE = "average"
"""The block that a report shows where no pool is chosen."""


class Columns:
    """A table with a column of names, which fold where they must, and columns of figures.

    Titles of blocks take no part in how wide the names are, and a name that would fold twice has a line of its own;
    spaces at the ends of lines, which a narrow terminal would fold, are left out.
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

    def _laid_out(self, width: int) -> tuple[Table, list[Text]]:
        """The table, and the lines that stand in it as marks."""
        made = Table(box=SIMPLE_HEAD, padding=(0, self._gap - 1, 0, 0))
        made.add_column(self._names, overflow="fold", min_width=self._least)
        for heading, least in zip(self._headings, self._widths, strict=True):
            made.add_column(heading, justify="right", no_wrap=True, min_width=least)
        room = width - self._gap - sum(least + self._gap for least in self._widths)
        lines: list[Text] = []
        for name, cells in self._rows:
            alone = not cells or name.cell_len > 2 * max(room, self._least)
            if not cells:
                made.add_section()
            if alone:
                made.add_row(chr(FIRST_MARK + len(lines)))
                lines.append(Text(" ") + name)
            if cells:
                made.add_row(Text() if alone else name, *cells)
        return made, lines

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        needed = 1 + self._least + self._gap + sum(least + self._gap for least in self._widths)
        made, _ = self._laid_out(options.max_width)
        return Measurement(needed - EDGE, Measurement.get(console, options, made).maximum - EDGE)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text | Segment]:
        if self._title:  # not the table's own, which is cut where the table ends
            for part in Text(self._title, "table.title").wrap(console, options.max_width):
                part.rstrip()
                yield part
        made, lines = self._laid_out(options.max_width)
        options = options.update(width=options.max_width + EDGE)
        for line in console.render_lines(made, options, pad=False):
            marks = [ord(one) - FIRST_MARK for segment in line for one in segment.text if ord(one) >= FIRST_MARK]
            if marks and marks[0] < len(lines):
                yield lines[marks[0]]
                continue
            while line and not line[-1].text.strip():
                line.pop()
            yield from line[:-1]
            if line:
                yield Segment(line[-1].text.rstrip(), line[-1].style)
            yield Segment.line()


def _width(text: str) -> int:
    return max(map(cell_len, text.split("\n")))


def _sortable(cell: str) -> str | list[Any]:
    """A cell of a report: with the number that it begins with, to sort by."""
    found = re.match(r"[+-]?[\d,]*\.?\d+", cell)
    if not found:
        return cell
    return [float(found[0].replace(",", "")) * (1000 if cell[found.end() :].startswith("k") else 1), cell]
