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
from suffice.panel import PanelComparison
from suffice.replay import Advice
from suffice.replay.calibrating import Judged, binned, expected_error
from suffice.replay.learning import LearningReplay
from suffice.replay.reliability import Reliability
from suffice.report.panels import front
from suffice.report.replayed import smoothed
from suffice.report.style import BLUE, GREEN, LOOKS, ORANGE, PURPLE, RED, SKY, looks

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
SHADES = [BLUE, ORANGE, GREEN, PURPLE]
SPANS = {"accuracy": 10.0, "agreement": 10.0}
"""The least that an axis of quality spans, in points: half a point is no cliff."""

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


def draw_scaling(panels: Mapping[str, Curves], costs: Sequence[str], quality: str, path: Path) -> None:
    """A row of panels for each title: quality against each cost, a line a method."""
    figure, grid = panels_grid(len(panels), len(costs))
    for row, (title, curves) in zip(grid, panels.items(), strict=True):
        for axes, cost in zip(row, costs, strict=True):
            for method, points in curves.items():
                _line(axes, points, cost, quality, **STYLES[method])
            if cost in ("rounds", "sequential_tokens"):
                _plain_log(axes)
            else:
                axes.set_xlim(left=0)
            _finish_curves(axes, title, cost, quality)
    _legend(figure)
    save_figure(figure, path)


def _finish_curves(axes: Axes, title: str, cost: str, quality: str) -> None:
    axes.set(title=title, xlabel=AXES[cost], ylabel=AXES[quality])
    _span(axes, quality)
    axes.grid()


def _plain_log(axes: Axes) -> None:
    """A logarithmic axis with plain numbers at it."""
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())


def _span(axes: Axes, quality: str) -> None:
    """Let the axis of a quality span so much that little does not look like much."""
    low, high = axes.get_ylim()
    span = SPANS[quality]
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


def draw_transfer(panels: Mapping[str, Curves], path: Path) -> None:
    """Accuracy against rounds and samples for each tested model, a line for each model trained on."""
    figure, grid = panels_grid(len(panels), 2)
    for row, (title, curves) in zip(grid, panels.items(), strict=True):
        for axes, cost in zip(row, ("rounds", "samples"), strict=True):
            for number, (source, points) in enumerate(curves.items()):
                style = {**_nth_style(number), "linestyle": ["-", "--", ":"][number % 3]}
                _line(axes, points, cost, "accuracy", label=f"trained on {source}", **style)
            _finish_curves(axes, f"tested on {title}", cost, "accuracy")
    _legend(figure)
    save_figure(figure, path)


def _nth_style(number: int) -> dict[str, Any]:
    """A colour and a marker for a curve that has none of its own."""
    return {"color": SHADES[number % 4], "marker": "o^sD"[number % 4]}


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


def draw_explanation(panels: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]], path: Path) -> None:
    """A row of scatter plots for each title, a point a question: samples drawn against what the x-axis names."""
    columns = len(next(iter(panels.values())))
    figure, grid = panels_grid(len(panels), columns)
    for row, (title, plots) in zip(grid, panels.items(), strict=True):
        for axes, (label, points) in zip(row, plots.items(), strict=True):
            axes.scatter(*zip(*points, strict=True), s=18, alpha=0.6, color=LOOKS["rl"][0], edgecolors="none")
            axes.set(title=title, xlabel=label, ylabel="samples drawn (mean)", ylim=(0, None))
            axes.grid()
    save_figure(figure, path)


def draw_reliability(confidence: Mapping[str, Reliability], certainty: Mapping[str, Reliability], path: Path) -> None:
    """Confidence and certainty by decile against what came true: a line for each number of draws, and the diagonal."""
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(WIDTH, WIDTH / 2), layout="constrained")
    after = {name: known for name, known in confidence.items() if name.startswith("after")}
    _draw_deciles(left, after, "confidence", "agreement with the full vote (%)")
    _draw_deciles(right, certainty, "certainty", "agreement with the majority of all responses (%)")
    save_figure(figure, path)


def _draw_deciles(axes: Axes, reliabilities: Mapping[str, Reliability], what: str, truth: str) -> None:
    axes.plot([0, 100], [0, 100], color=INK, linewidth=1, linestyle="--", label="perfect")
    for number, (name, known) in enumerate(reliabilities.items()):
        sure, agree, shares = ([one[key] for one in known.deciles] for key in ("confidence", "agreement", "share"))
        style = _nth_style(number)
        label = f"{name} (error {known.calibration_error:.1f} points)"
        axes.plot(sure, agree, color=style["color"], linewidth=1)
        axes.scatter(sure, agree, [8 + 3 * share for share in shares], **style, label=label)
    axes.set(xlabel=f"{what} (%)", ylabel=truth, title=f"Reliability of the {what} (area: share of the outcomes)")
    axes.grid()
    axes.legend()


def draw_calibration(judged: Judged, path: Path) -> None:
    """The probability to be right against what is right, beside the certainty; and risk against coverage."""
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(WIDTH, WIDTH / 2), layout="constrained")
    left.plot([0, 100], [0, 100], color=INK, linewidth=1, linestyle="--", label="perfect")
    for number, (name, said) in enumerate({"right": judged.right, "certainty": judged.certainties}.items()):
        label = f"{name} (error {100 * expected_error(said, judged.truths):.1f} points)"
        fifths = 100 * np.array(binned(said, judged.truths))
        left.plot(*fifths.T, **_nth_style(number), label=label)
    left.set(xlabel="said (%)", ylabel="right (%)", title="Reliability, by fifths of the labels")
    left.legend()
    risks = 100 * np.array([(share, risk) for share, _, risk in judged.risks()])
    right.plot(*risks.T, **_nth_style(0))
    right.set(xlabel="answered (%)", ylabel="wrong among them (%)", title="Risk and coverage", xlim=(0, 100))
    right.set_ylim(bottom=0)
    for axes in (left, right):
        axes.grid()
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


def draw_front(advice: Advice, path: Path) -> None:
    """Tokens against latency: all that was swept, the front, and what is advised."""
    figure, axes = pyplot.subplots(figsize=(WIDTH * 0.7, ROW_HEIGHT * 1.2), layout="constrained")
    kinds = {
        "rounds": ("rounds", *LOOKS["rounds"]),
        "launch": ("flow, by launch", *LOOKS["flow"]),
        "arrival": ("flow, by arrival", ORANGE, "^"),
    }
    for kind, (label, colour, marker) in kinds.items():
        some = [choice for choice in advice.choices if (choice.flow.order if choice.flow else "rounds") == kind]
        places = [one.latency for one in some], [one.tokens for one in some]
        axes.scatter(*places, s=22, color=colour, marker=marker, label=label)
    axes.plot(
        [one.latency for one in advice.front],
        [one.tokens for one in advice.front],
        color=INK,
        linewidth=1,
        label="front, at the agreement asked for",
    )
    chosen = advice.chosen
    axes.scatter([chosen.latency], [chosen.tokens], s=160, marker="*", color=RED, zorder=3, label="advised")
    axes.set(xlabel="latency (tokens on the critical path)", ylabel="tokens spent", ylim=(0, None), xlim=(0, None))
    axes.grid()
    axes.legend()
    save_figure(figure, path)


def draw_panel(compared: PanelComparison, path: Path) -> None:
    """Accuracy, or without gold answers agreement, against money: each voter alone, and the panel's controllers."""
    figure, axes = pyplot.subplots(figsize=(WIDTH * 0.7, ROW_HEIGHT * 1.2), layout="constrained")
    quality = "agreement" if compared.baseline.accuracy is None else "accuracy"
    series = front(compared)
    for (name, some), (colour, marker) in zip(series.items(), looks(list(series)), strict=True):
        places = [100 * one.cost / compared.baseline.cost for one in some], [getattr(one, quality) for one in some]
        axes.plot(*places, color=colour, marker=marker, label=name)
    _plain_log(axes)
    axes.set(xlabel=f"cost, in percent of {compared.baseline.name}", ylabel=AXES[quality])
    _span(axes, quality)
    axes.grid()
    _legend(figure)
    save_figure(figure, path)


def draw_learning(replays: Sequence[LearningReplay], path: Path) -> None:
    """Samples and agreement against the number of questions seen, a row a pool: learning, and without."""
    figure, grid = panels_grid(len(replays), 2, height=2.9)
    for row, replay in zip(grid, replays, strict=True):
        ways = (("without", replay.staying, LOOKS["sc"][0]), ("learning", replay.learning, LOOKS["plan"][0]))
        for name, runs, colour in ways:
            seen, samples, agreement = smoothed(runs)
            row[0].plot(seen, samples, color=colour, label=name)
            row[1].plot(seen, agreement, color=colour, label=name)
        row[0].set(title=replay.pool, xlabel="questions seen", ylabel="samples", ylim=(0, None))
        row[1].set(title=replay.pool, xlabel="questions seen", ylabel="agreement with the full vote (%)")
        _span(row[1], "agreement")
        for axes in row:
            axes.grid()
            axes.legend(loc="lower right")
    save_figure(figure, path)
