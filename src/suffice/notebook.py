"""How things look in a notebook: small tables and bars as HTML, and rows as data frames.

There are no colours but the text's own, so that it reads well on light and dark pages.
"""

import importlib
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from suffice.errors import OptionError

LONGEST = 60
MOST_ROWS = 16

_BAR = "display:inline-block;height:.7em;background:currentColor;opacity:.6;width:"


def short(text: str, longest: int = LONGEST) -> str:
    """A text in one line that is not too long."""
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def many(count: int, noun: str) -> str:
    """A count with its noun, in the plural unless it is 1."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def table(title: str, headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A small table; what is longer than a screen is said to be there, and left out."""
    rows = list(rows)
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(cell)}</td>' for cell in row)}</tr>" for row in rows[:MOST_ROWS])
    more = f"<p>and {len(rows) - MOST_ROWS} more</p>" if len(rows) > MOST_ROWS else ""
    return f"<p>{escape(title)}</p><table><tr>{head}</tr>{body}</table>{more}"


def bars(title: str, counts: Mapping[str, int], most: int) -> str:
    """A bar for each count, as long as its share of the most that there may be."""
    shown = list(counts.items())[:MOST_ROWS]
    rows = "".join(
        f"<tr><td>{escape(short(name))}</td><td>{count}</td>"
        f'<td style="text-align:left"><span style="{_BAR}{10 * count / max(most, 1):.2f}em"></span></td></tr>'
        for name, count in shown
    )
    more = f"<p>and {len(counts) - len(shown)} more</p>" if len(counts) > len(shown) else ""
    return f"<p>{escape(title)}</p><table>{rows}</table>{more}"


def frame(library: str, columns: Mapping[str, Sequence[Any]]) -> Any:
    """The columns as a data frame of pandas or polars, where that is installed."""
    try:
        made = importlib.import_module(library)
    except ModuleNotFoundError:
        raise OptionError(f"this needs {library}: pip install {library}") from None
    return made.DataFrame(dict(columns))


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.1f}" if abs(value) >= 2 else f"{value:.3f}"
    return "" if value is None else escape(short(str(value)))
