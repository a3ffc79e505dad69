"""Pictures of experiments: one colour a method throughout, points of a sweep joined in order of the parameter."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import matplotlib
import numpy as np
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from suffice.experiments.budgets import WAYS, Kept
from suffice.experiments.sweeps import Curves, SweepPoint
from suffice.report.html import Section
from suffice.report.style import BLUE, LOOKS, ORANGE, RED, SKY

matplotlib.use("Agg")

INK = "#70757d"
"""What is written and ruled: to be read on white and on black, for a picture's ground may be either."""

STYLE: dict[Any, Any] = {
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK),
    "grid.color": INK,
    "grid.alpha": 0.25,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "legend.frameon": False,
    "figure.constrained_layout.h_pad": 0.1,  # else a title touches the axis above it
    "figure.constrained_layout.w_pad": 0.1,
    "font.family": "sans-serif",
    "svg.fonttype": "none",
    "svg.hashsalt": "suffice",
}
pyplot.rcParams.update(STYLE)

LABELS = {
    "sc": "SC",
    "asc": "ASC",
    "esc": "ESC",
    "rl": "RL-guided",
    "rl_rounds": "RL-guided, rounds cost too",
    "plan": "exact plan",
}
STYLES: dict[str, dict[str, Any]] = {
    method: {"label": label, "color": LOOKS[method][0], "marker": LOOKS[method][1]} for method, label in LABELS.items()
}
AXES = {
    "accuracy": "accuracy (%)",
    "agreement": "agreement with the full vote (%)",
    "rounds": "rounds",
    "samples": "samples",
    "sequential_tokens": "sequential tokens (thousands)",
    "total_tokens": "total tokens (thousands)",
}
SPAN = 10.0
"""The least that an axis of quality spans, in points: half a point is no cliff."""

MOST_MARKS = 24
"""A line of more points than this has no marks on it."""

BUDGET_MARKS = ((BLUE, "o"), (SKY, "^"), (RED, "*"), (ORANGE, "v"))
"""Of the ways to keep to a budget, in their order: what learns in blues, what plans in reds."""

WIDTH = 10.0
ROW_HEIGHT = 3.6
DPI = 100


def panels_grid(rows: int, columns: int, height: float = ROW_HEIGHT, **options: Any) -> tuple[Figure, Any]:
    """A figure with a grid of panels, so many inches high a row; the options are those of `pyplot.subplots`."""
    figure, grid = pyplot.subplots(
        rows, columns, figsize=(WIDTH, height * rows), squeeze=False, layout="constrained", **options
    )
    return figure, grid


def draw_scaling(
    panels: Mapping[str, Curves],
    costs: Sequence[str],
    quality: str,
    path: Path,
    styles: Mapping[str, Mapping[str, Any]] = STYLES,
) -> None:
    """A row of panels for each title: quality against each cost, a line a method."""
    figure, grid = panels_grid(len(panels), len(costs))
    for row, (title, curves) in zip(grid, panels.items(), strict=True):
        for axes, cost in zip(row, costs, strict=True):
            for method, points in curves.items():
                _line(axes, points, cost, quality, **styles[method])
            if cost in ("rounds", "sequential_tokens"):
                _plain_log(axes)
            else:
                axes.set_xlim(left=0)
            axes.set(title=title, xlabel=AXES[cost], ylabel=AXES[quality])
            _span(axes, SPAN)
            axes.grid()
    _legend(figure)
    save_figure(figure, path)


def _plain_log(axes: Axes) -> None:
    """A logarithmic axis with plain numbers at it."""
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())


def _span(axes: Axes, span: float) -> None:
    """Let the axis of a quality span so many points that little does not look like much."""
    low, high = axes.get_ylim()
    high = min(max(high, (low + high + span) / 2), 100 + max(span, 100 - low) / 25)  # marks at 100 are whole
    axes.set_ylim(max(0, min(low, high - span)), high)


LETTERS, HANDLE = 14, 8
"""Letters of a legend in an inch, and those in whose place the sign before a name stands."""


def _legend(figure: Figure) -> None:
    """One legend for all panels, below them and no wider: a method need not be in each."""
    handles: dict[str, Any] = {}
    for axes in figure.axes:
        found = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
        handles |= {label: handle for label, handle in found.items() if label not in handles}
    many = len(handles)
    fitting = LETTERS * figure.get_figwidth() // (max(map(len, handles), default=0) + HANDLE)
    columns = min(many if many <= 4 else -(-many // 2), int(fitting))
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=max(columns, 1))


def draw_plots(plots: Sequence[Section], path: Path) -> None:
    """Plots of a report beside each other, by the first of their axes: a row for each of their panels."""
    rows = max((len(plot["panels"]) for plot in plots), default=1)
    height = WIDTH / 2 if rows == 1 else ROW_HEIGHT
    figure, grid = panels_grid(rows, max(len(plots), 1), height)
    for column, plot in zip(grid.T, plots, strict=False):
        for axes, shown in zip(column, plot["panels"], strict=True):
            for series in shown["series"]:
                _draw_series(axes, series, plot)
            _finish_plot(axes, plot, shown["name"] or plot["title"])
            if len(plots) > 1 and len(shown["series"]) > 1:
                axes.legend()
    if len(plots) == 1:
        _legend(figure)
    save_figure(figure, path)


def _draw_series(axes: Axes, series: Section, plot: Section) -> None:
    x, y, sizes = plot["x"][0]["column"], plot["y"][0]["column"], plot["sizes"]
    points = [point for point in series["points"] if point[x] is not None and point[y] is not None]
    style = {"color": series["colour"], "label": series["name"], "marker": series["marker"]}
    if series["line"] and len(points) > MOST_MARKS:
        style["marker"] = ""
    columns = [point[x] for point in points], [point[y] for point in points]
    if series["line"] and sizes is None:
        axes.plot(*columns, linewidth=1.4, **style)
        return
    if series["line"]:
        axes.plot(*columns, color=series["colour"], linewidth=1)
    large = 160 if series["marker"] == "*" else 22
    axes.scatter(*columns, [8 + 3 * point[sizes] for point in points] if sizes else large, alpha=0.8, **style)


def _finish_plot(axes: Axes, plot: Section, title: str) -> None:
    x, y = plot["x"][0], plot["y"][0]
    if plot["diagonal"]:
        axes.plot([0, 100], [0, 100], color=INK, linewidth=1, linestyle="--", label="perfect")
    if x["log"]:
        _plain_log(axes)
    axes.set(title=title, xlabel=x["label"], ylabel=y["label"])
    if x["zero"]:
        axes.set_xlim(left=0)
    if y["zero"]:
        axes.set_ylim(bottom=0)
    if y["span"] and not plot["diagonal"]:
        _span(axes, y["span"])
    axes.grid()


def draw_budgets(found: Sequence[Kept], path: Path) -> None:
    """Samples over their limit against rounds over theirs, a panel a pool and a point a way and budget."""
    pools = sorted(dict.fromkeys(kept.pool for kept in found), key=lambda pool: "__" in pool)  # models' means first
    rows = -(-len(pools) // 2)
    figure, grid = panels_grid(rows, 2)
    for axes, pool in zip(grid.flat, pools, strict=False):
        for way, (colour, marker) in zip(WAYS, BUDGET_MARKS, strict=True):
            mine = [kept for kept in found if (kept.pool, kept.way) == (pool, way)]
            if mine:
                samples = [fmean(result.samples for result in kept.results) / kept.limits[0] for kept in mine]
                rounds = [fmean(result.rounds for result in kept.results) / kept.limits[1] for kept in mine]
                sizes = [5 * kept.limits[0] for kept in mine]
                axes.scatter(samples, rounds, s=sizes, color=colour, marker=marker, alpha=0.8, label=way)
        axes.axvline(1, color=INK, linewidth=0.8)
        axes.axhline(1, color=INK, linewidth=0.8)
        axes.set(title=pool, xlabel="samples, as a share of their limit", ylabel="rounds, as a share of theirs")
        axes.grid()
    for axes in grid.flat[len(pools) :]:
        axes.set_visible(False)
    _legend(figure)
    save_figure(figure, path)


def _line(
    axes: Axes, points: Sequence[SweepPoint], cost: str, quality: str, label: str, color: str, **style: Any
) -> None:
    """A curve; where its points are means over seeds, with a band and bars of one standard deviation."""
    scale = 1000 if cost.endswith("tokens") else 1
    known = [p for p in points if p.figures[cost] is not None and p.figures[quality] is not None]
    costs, values = (np.array([p.figures[metric] for p in known], float) for metric in (cost, quality))
    spread = max((p.seeds for p in known), default=1)
    if spread > 1:
        label += " (± s.d. over seeds)"
    axes.plot(costs / scale, values, label=label, color=color, markersize=5, linewidth=1.4, **style)
    if spread > 1:
        wide, high = (np.array([p.deviations.get(metric) or 0.0 for p in known]) for metric in (cost, quality))
        axes.fill_between(costs / scale, values - high, values + high, color=color, alpha=0.18, linewidth=0)
        axes.errorbar(
            costs / scale, values, xerr=wide / scale, yerr=high, fmt="none", ecolor=color, elinewidth=0.8, alpha=0.6
        )


ENDINGS = (".png", ".svg", ".pdf")


def save_figure(figure: Figure, path: Path) -> None:
    """As a PNG on white, and beside it as an SVG with no ground of its own, for light and for dark pages."""
    figure.savefig(path, dpi=DPI)
    if path.suffix == ".png":
        figure.savefig(path.with_suffix(".svg"), transparent=True, metadata={"Date": None})
    pyplot.close(figure)
