"""Pictures of plots, in a style to be read on light and on dark pages."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from suffice.report.html import Section

matplotlib.use("Agg")

INK = "#70757d"
"""Text and rules: to be read on white and on black."""

STYLE: Any = {
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

MOST_MARKS = 24  # a line of more points has no marks on it

WIDTH = 10.0
ROW_HEIGHT = 3.6
DPI = 100


def panels_grid(rows: int, columns: int, height: float = ROW_HEIGHT, **options: Any) -> tuple[Figure, Any]:
    """A figure with a grid of panels; rows are so many inches high."""
    size = (WIDTH, height * rows)
    return pyplot.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained", **options)


def _span(axes: Axes, span: float) -> None:
    """Give the axis a minimum span, so that small differences look small."""
    low, high = axes.get_ylim()
    high = min(max(high, (low + high + span) / 2), 100 + max(span, 100 - low) / 25)  # marks at 100 are whole
    axes.set_ylim(max(0, min(low, high - span)), high)


LETTERS, HANDLE = 14, 8
"""Letters of a legend in an inch, and those that a sign takes."""


def draw_legend(figure: Figure) -> None:
    """One legend for all panels, below them and no wider."""
    handles: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    many = len(handles)
    fitting = LETTERS * figure.get_figwidth() // (max(map(len, handles), default=0) + HANDLE)
    columns = min(many if many <= 4 else -(-many // 2), int(fitting))
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=max(columns, 1))


def draw_plots(plots: Sequence[Section], path: Path) -> None:
    """Draw plots beside each other, a row a panel; a single plot's panels are in two columns."""
    if len(plots) == 1 and len(plots[0]["panels"]) > 1:
        plots = [{**plots[0], "panels": plots[0]["panels"][place::2]} for place in (0, 1)]
    rows = max((len(plot["panels"]) for plot in plots), default=1)
    height = WIDTH / 2 if rows == 1 else ROW_HEIGHT
    figure, grid = panels_grid(rows, max(len(plots), 1), height)
    alike = len({plot["title"] for plot in plots}) == 1  # the same series, by other axes
    for column, plot in zip(grid.T, plots, strict=False):
        for axes in column[len(plot["panels"]) :]:
            axes.set_visible(False)
        for axes, shown in zip(column, plot["panels"], strict=False):
            for series in shown["series"]:
                _draw_series(axes, series, plot)
            _finish_plot(axes, plot, shown["name"] or plot["title"])
            if not alike and len(shown["series"]) > 1:
                axes.legend()
    if alike and any(len(shown["series"]) > 1 for plot in plots for shown in plot["panels"]):
        draw_legend(figure)
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
        spread = plot["spread"]
        if spread and points and len(points[0]) > y + spread:
            across, up, wide, high = np.array(points)[:, [x, y, x + spread, y + spread]].astype(float).T
            bars = {"ecolor": series["colour"], "elinewidth": 0.8, "alpha": 0.6}
            axes.fill_between(across, up - high, up + high, color=series["colour"], alpha=0.18, linewidth=0)
            axes.errorbar(across, up, xerr=wide, yerr=high, fmt="none", **bars)
        return
    if series["line"]:
        axes.plot(*columns, color=series["colour"], linewidth=1)
    large = 160 if series["marker"] == "*" else 22
    axes.scatter(*columns, [8 + 3 * point[sizes] for point in points] if sizes else large, alpha=0.8, **style)


def _finish_plot(axes: Axes, plot: Section, title: str) -> None:
    x, y = plot["x"][0], plot["y"][0]
    if plot["diagonal"]:
        axes.plot([0, 100], [0, 100], color=INK, linewidth=1, linestyle="--", label="perfect")
    if x["log"]:  # with plain numbers at it
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set(title=title, xlabel=x["label"], ylabel=y["label"])
    if x["zero"]:
        axes.set_xlim(left=0)
    if y["zero"]:
        axes.set_ylim(bottom=0)
    if y["span"] and not plot["diagonal"]:
        _span(axes, y["span"])
    axes.grid()


ENDINGS = (".png", ".svg", ".pdf")


def save_figure(figure: Figure, path: Path) -> None:
    """As a PNG on white, and as an SVG without a ground for light and dark pages."""
    figure.savefig(path, dpi=DPI)
    if path.suffix == ".png":
        figure.savefig(path.with_suffix(".svg"), transparent=True, metadata={"Date": None})
    pyplot.close(figure)
