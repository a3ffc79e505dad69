"""The report as one HTML file: tables that sort, plots to point at and every question's votes, with no network."""

import json
import math
import platform
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from hashlib import sha256
from html import escape
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from typing import Any

from suffice.report.style import looks

PACKAGES = ("suffice", "numpy", "scipy", "torch", "stable-baselines3", "openai")

Section = dict[str, Any]
"""A part of the page, as its script reads it: `kind` is table, plot, questions or facts."""

Point = Sequence[str | float | None]  # a label, and figures in the order of a plot's axes


@dataclass(frozen=True)
class Report:
    """What a report says first, its parts, and what it was made with."""

    title: str
    sentence: str
    sections: Sequence[Section]
    settings: dict[str, Any] = field(default_factory=dict)
    pools: Sequence[str] = ()
    """Where there are several, one of them can be chosen."""


def report_html(report: Report, command: str) -> str:
    """The whole file. What it shows is data: a policy lets nothing run but its own script."""
    page = files("suffice.report") / "page"
    css, script = (f"\n{(page / name).read_text()}" for name in ("report.css", "report.js"))
    style, run = (b64encode(sha256(text.encode()).digest()).decode() for text in (css, script))
    given = {name.replace("_", " "): _setting(one) for name, one in report.settings.items() if one is not None}
    sections = [*report.sections, _facts("Settings", given), _facts("Versions", _versions())]
    data = json.dumps(_known({"sections": sections, "pools": list(report.pools)}), separators=(",", ":"))
    own = f"style-src 'sha256-{style}'; script-src 'sha256-{run}'"
    parts = {
        "title": escape(report.title),
        "sentence": escape(report.sentence),
        "command": escape(command),
        "made": f"suffice {version('suffice')}, {datetime.now().astimezone():%Y-%m-%d %H:%M}",
        "policy": f"default-src 'none'; {own}; base-uri 'none'; form-action 'none'",
        "css": css,
        "js": script,
        "data": data.replace("<", "\\u003c"),  # else </script> in an answer would end the data
    }
    whole = re.sub(r"{{(\w+)}}", lambda place: parts[place[1]], (page / "report.html").read_text())
    return whole.encode("utf-8", "replace").decode()


def table(title: str, columns: Sequence[Section], panels: Sequence[Section]) -> Section:
    """A table that sorts by any column; a cell is a text, a number, or a number to sort by with its text."""
    return {"kind": "table", "title": title, "columns": columns, "panels": panels}


def words(label: str) -> Section:
    return {"label": label, "text": True}


def figures(label: str, places: int | None = 1) -> Section:
    return {"label": label, "places": places}


def _facts(title: str, known: dict[str, str]) -> Section:
    return {"kind": "facts", "title": title, "facts": list(known.items())}


def _versions() -> dict[str, str]:
    found = {"Python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}"}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # of an extra that is not installed
            continue
    return found


def _setting(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _known(value: Any) -> Any:
    """The same with no figure that JSON can't have, and in five places."""
    if isinstance(value, dict):
        return {name: _known(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_known(one) for one in value]
    if isinstance(value, float):
        return round(value, 5) if math.isfinite(value) else None
    return value


@dataclass(frozen=True)
class Axis:
    """What an axis of a plot shows, and where it may begin and end."""

    label: str
    places: int = 1
    log: bool = False
    span: float | None = None
    """The least that it spans, so that little does not look like much."""
    least: float | None = None
    most: float | None = None
    zero: bool = False
    """Whether it begins there."""


def percent(label: str, span: float = 10, places: int = 1) -> Axis:
    return Axis(f"{label} (%)", places, span=span, least=0, most=100)


def plot(
    title: str,
    x: Sequence[Axis],
    y: Sequence[Axis],
    panels: Sequence[Section],
    note: str = "",
    more: Sequence[Axis] = (),
    diagonal: bool = False,
    sizes: int | None = None,
    spread: int | None = None,
) -> Section:
    """Points of several series, one of the axes against another; pointing at one shows all figures, `more` among them.

    Marks are as large as the column `sizes` says, in percent. A point that has a column `spread` columns after that of
    a figure has the figure's deviation there.
    """
    details = [{"column": place, **asdict(axis)} for place, axis in enumerate((*x, *y, *more), start=1)]
    axes = {"x": details[: len(x)], "y": details[len(x) : len(x) + len(y)], "details": details}
    about = {"title": title, "note": note, "panels": panels, "diagonal": diagonal, "sizes": sizes, "spread": spread}
    return {"kind": "plot", **about, **axes}


def apart(section: Section) -> list[Section]:
    """A plot for each pair of axes."""
    return [{**section, "x": [x], "y": [y]} for x in section["x"] for y in section["y"]]


def panel(
    name: str, points: Mapping[str, Sequence[Point]], line: bool | str = False, styles: Sequence[tuple[str, str]] = ()
) -> Section:
    """A pool's points, or all with no name: series, of which all or one may be lines."""
    series = [
        {"name": label, "colour": colour, "marker": marker, "line": line in (True, label), "points": some}
        for (label, some), (colour, marker) in zip(points.items(), styles or looks(list(points)), strict=True)
    ]
    return {"name": name, "series": series}
