"""Figures as cells of Markdown tables and as columns of CSV files: means, deviations over seeds, intervals."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from suffice.replay import Difference, Result, mean_over_pools
from suffice.replay.evaluate import spread
from suffice.report.html import Section

Row = dict[str, Any]  # a line of a table, by its columns


@dataclass(frozen=True)
class Page:
    """An experiment to be read: Markdown, tables for machines, and plots.

    `pictures` are the plots that lie beside the page, by file name; `plots` are for a report.
    """

    text: str
    rows: list[Row]
    differences: Sequence[Row] = ()
    plots: Sequence[Section] = ()
    pictures: Mapping[str, Sequence[Section]] = field(default_factory=dict)


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def pictures(names: Iterable[str]) -> str:
    return "".join(f"\n![{name}]({name})\n" for name in names)


def shown(value: float | str | None, places: str = ".1f") -> str:
    """A figure in this format, a dash where unknown; a text as it is."""
    if value is None:
        return "–"
    return value if isinstance(value, str) else f"{value:{places}}"


def text_of(value: float | None, metric: str = "") -> str:
    """A figure in few digits, as they suit the metric."""
    if metric.endswith("tokens"):
        return shown(value, ".0f") if value is None or value < 1000 else f"{value / 1000:.1f}k"
    return shown(value, ".3f" if metric == "reward" else ".1f")


def cell(row: Row, metric: str) -> str:
    """A row's figure with its deviation, where there is one."""
    text, deviation = text_of(row[metric], metric), row[f"{metric}_std"]
    if deviation is None:
        return text
    return f"{text} ±" + (text_of(deviation, metric) if metric.endswith("tokens") else f"{deviation:.2f}")


def spreads(runs: Sequence[Sequence[Result]], metrics: Iterable[str]) -> Row:
    """Means and deviations over seeds, of each seed's mean over pools."""
    row: Row = {"seeds": len(runs)}
    for metric in metrics:
        row[metric], row[f"{metric}_std"] = spread([mean_over_pools(run, metric) for run in runs])
    return row


def gap_text(gap: Difference | None, metric: str, places: int | None = None) -> str:
    """A difference with its interval, in as many places as suit the metric."""
    places = places or (4 if metric == "reward" else 2)
    if gap is None:
        return "–"
    interval = "" if gap.low is None else f" [{gap.low:+.{places}f}, {gap.high:+.{places}f}]"
    return f"{gap.mean:+.{places}f}{interval}"


def gap_columns(gaps: Mapping[str, Difference | None]) -> dict[str, float | None]:
    return {
        f"{metric}{suffix}": getattr(gap, name) if gap else None
        for metric, gap in gaps.items()
        for name, suffix in (("mean", ""), ("low", "_low"), ("high", "_high"))
    }
