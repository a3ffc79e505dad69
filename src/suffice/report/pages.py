"""A page of Markdown, as `reproduce` writes them, for the terminal."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from rich.cells import cell_len
from rich.text import Text

from suffice.report.layout import Columns

LONGEST_NAME = 24
GAP = 2


def shown_page(page: str, width: int) -> Iterator[Columns | Text]:
    """The parts of a page: its lines, and its tables, each cut into as many as fit this width."""
    for is_table, lines in groupby(page.splitlines(), lambda line: line.startswith("|")):
        if is_table:
            heading, _, *rows = ([_plain(cell) for cell in line.strip()[1:-1].split("|")] for line in lines)
            yield from _tables([heading, *rows], width)
        else:
            yield from _lines(lines)


def _lines(lines: Iterable[str]) -> Iterator[Text]:
    empty = False
    for line in lines:
        style = "bold" if re.match(r"#+ |\*\*.*\*\*$", line) else ""
        if line.strip() or not empty:
            yield Text(_plain(line.lstrip("# ")), style)
        empty = not line.strip()


def _plain(text: str) -> str:
    """What Markdown says, without its marks; of pictures and links their names."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text.strip())
    return re.sub(r"\*\*|`|\\(?=[|*_])", "", text)


def _tables(lines: Sequence[Sequence[str]], width: int) -> Iterator[Columns]:
    """A table cut between columns; the names are in each part."""
    heading, *rows = lines
    heads = [one.replace(" ", "\n", 1) for one in heading]
    columns = zip(heads, *rows, strict=True)
    widths = [max(cell_len(part) for cell in column for part in cell.split("\n")) for column in columns]
    room = width - min(widths[0], LONGEST_NAME) - GAP
    part: list[int] = []
    parts = [part]
    for number in range(1, len(heads)):
        if part and sum(widths[one] + GAP for one in [*part, number]) > room:
            parts.append(part := [])
        part.append(number)
    for part in parts:
        table = Columns("", heads[0], [heads[one] for one in part], min(widths[0], LONGEST_NAME), GAP)
        for row in rows:
            table.add_row(row[0], *(row[one] for one in part))
        yield table
