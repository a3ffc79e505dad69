"""The report of the paper's experiments, made of their pages."""

from collections.abc import Mapping, Sequence
from typing import Any

from suffice.controllers import Controller
from suffice.experiments import EXPERIMENTS
from suffice.report.html import Point, Report, Section, figures, panel, plot, table, words
from suffice.report.markdown import Page
from suffice.report.replayed import FIGURES, X, Y, curves_of

METRICS = [metric for metric in FIGURES if metric != "reward"]

BY = {"transfer": ("tested", "trained"), "budgets": ("pool", "way")}
"""The columns that tell panels and series, where these are not pool and method."""

Row = Mapping[str, Any]


def experiments_report(pages: Mapping[str, Page], learned: Sequence[Controller], settings: Mapping[str, Any]) -> Report:
    """Each experiment as a plot and a table, and how the controllers were learned."""
    sections: list[Section] = []
    pools: dict[str, None] = {}
    for name, page in pages.items():
        if not page.rows:  # an experiment that these pools don't allow
            continue
        if name != "elections":  # which differ in accuracy alone
            sections.append(page.plot or _plot(name, page.rows))
        sections.append(_table(name, page.rows))
        pools |= dict.fromkeys(str(row[_by(name)[0]]) for row in page.rows)
    sentence = _sentence(pages["main"].rows) if "main" in pages else ""
    title = "The paper's experiments" if len(pages) > 1 else EXPERIMENTS[next(iter(pages))].title
    return Report(title, sentence, [*sections, *curves_of(learned)], dict(settings), list(pools))


def _by(name: str) -> tuple[str, str]:
    return BY.get(name, ("pool", "method"))


def _plot(name: str, rows: Sequence[Row]) -> Section:
    """A panel a pool and a series a method, joined where a parameter is swept."""
    panels: dict[str, dict[str, list[Point]]] = {}
    for row in rows:
        pool, method = (str(row[key]) for key in _by(name))
        parameter = str(row.get("parameter") or row.get("penalty_draw") or "")
        if name == "budgets":
            parameter = f"{row['samples_limit']:g} samples in {row['rounds_limit']:g} rounds"
        point: Point = [parameter, *(row.get(metric) for metric in METRICS)]
        panels.setdefault(pool, {}).setdefault(_method(method), []).append(point)
    swept = name in ("scaling", "frontier", "transfer")
    made = [panel(pool, points, swept) for pool, points in {"": _averages(panels), **panels}.items()]
    return plot(EXPERIMENTS[name].title, X, Y[:2], made, "Up and to the left is better; point at a mark to read it.")


def _averages(panels: Mapping[str, Mapping[str, Sequence[Point]]]) -> dict[str, list[Point]]:
    """Each setting of each method in the mean over the pools."""
    found: dict[str, dict[Any, list[Point]]] = {}
    for points in panels.values():
        for method, some in points.items():
            for point in some:
                found.setdefault(method, {}).setdefault(point[0], []).append(point[1:])
    return {
        method: [[parameter, *map(_mean, zip(*rows, strict=True))] for parameter, rows in settings.items()]
        for method, settings in found.items()
    }


def _mean(values: Sequence[Any]) -> float | None:
    return None if None in values else sum(values) / len(values)


def _method(name: str) -> str:
    """As controllers are called, so that each keeps its colour."""
    if name.startswith("SC@"):
        return "sc"
    return {"ASC": "asc", "ESC": "esc", "RL-guided": "rl", "rl_rounds": "rl, rounds cost too"}.get(name, name)


def _table(name: str, rows: Sequence[Row]) -> Section:
    """All columns of the file; what is a number in any row is a column of numbers."""
    shown = [key for key in rows[0] if any(row[key] is not None for row in rows)]
    columns = [_column(key, [row[key] for row in rows]) for key in shown]

    def lines(pool: str) -> list[list[Any]]:
        return [[row[key] for key in shown] for row in rows if not pool or row[_by(name)[0]] == pool]

    pools = dict.fromkeys(str(row[_by(name)[0]]) for row in rows)
    panels = [{"name": pool, "rows": lines(pool)} for pool in ("", *pools)]
    return table(f"{EXPERIMENTS[name].title}: the figures", columns, panels)


def _column(key: str, cells: Sequence[str | float | None]) -> Section:
    heading = key.replace("_std", " ±").replace("_", " ")
    numbers = [cell for cell in cells if isinstance(cell, int | float)]
    places = 4 if key in ("reward", "entropy", "penalty_draw") else 0 if key == "seeds" else 2
    return figures(heading, places) if numbers else words(heading)


def _sentence(rows: Sequence[Row]) -> str:
    """The learned controller against SC, in the mean over the pools."""

    def mean(method: str, metric: str) -> float:
        values = [float(row[metric] or 0) for row in rows if row["method"] == method]
        return sum(values) / len(values)

    full = next(str(row["method"]) for row in rows if str(row["method"]).startswith("SC@"))
    saved = 100 * (1 - mean("RL-guided", "samples") / mean(full, "samples"))
    sentence = (
        f"RL-guided: {saved:.0f} % fewer samples than {full} in {mean('RL-guided', 'rounds'):.1f} rounds, "
        f"{mean('RL-guided', 'agreement'):.1f} % the same answers"
    )
    if any(row.get("agreement_independent") is None for row in rows):
        return sentence
    ours, theirs = (mean(method, "agreement_independent") for method in ("RL-guided", full))
    return f"{sentence}; an independent {full} agrees with RL-guided in {ours:.1f} %, with {full} in {theirs:.1f} %"
