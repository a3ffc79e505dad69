"""Pictures of experiments: one colour a method throughout, points of a sweep joined in order of the parameter."""

from collections.abc import Mapping, Sequence
from math import dist
from pathlib import Path
from statistics import fmean
from typing import Any

import matplotlib
import numpy as np
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from suffice.controllers import Controller
from suffice.experiments.budgets import WAYS, Kept
from suffice.experiments.sweeps import Curves, Point
from suffice.replay import Advice, Lesson, Reliability
from suffice.report.curves import smoothed
from suffice.report.style import BLUE, GREEN, LOOKS, ORANGE, PURPLE, RED, SKY
from suffice.tally import Tally

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
METHODS = {method: (label, LOOKS[method][0]) for method, label in LABELS.items()}
MARKERS = {method: LOOKS[method][1] for method in LABELS}
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


def draw_scaling(panels: Mapping[str, Curves], costs: Sequence[str], quality: str, path: Path) -> None:
    """A row of panels for each title: quality against each cost, a line a method."""
    figure, grid = pyplot.subplots(
        len(panels), len(costs), figsize=(WIDTH, ROW_HEIGHT * len(panels)), squeeze=False, layout="constrained"
    )
    for row, (title, curves) in zip(grid, panels.items(), strict=True):
        for axes, cost in zip(row, costs, strict=True):
            for method, points in curves.items():
                label, colour = METHODS[method]
                _line(axes, points, cost, quality, label=label, color=colour, marker=MARKERS[method])
            axes.set(title=title, xlabel=AXES[cost], ylabel=AXES[quality])
            if cost in ("rounds", "sequential_tokens"):
                _plain_log(axes)
            else:
                axes.set_xlim(left=0)
            _span(axes, quality)
            axes.grid()
    _legend(figure)
    _save(figure, path)


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


def _legend(figure: Figure) -> None:
    """One legend for all panels, below them: a method need not be in each."""
    handles: dict[str, Any] = {}
    for axes in figure.axes:
        found = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
        handles |= {label: handle for label, handle in found.items() if label not in handles}
    many = len(handles)
    columns = many if many <= 4 else -(-many // 2)
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=max(columns, 1))


def draw_transfer(panels: Mapping[str, Curves], path: Path) -> None:
    """Accuracy against rounds and samples for each tested model, a line for each model trained on."""
    costs = ("rounds", "samples")
    figure, grid = pyplot.subplots(
        len(panels), 2, figsize=(WIDTH, ROW_HEIGHT * len(panels)), squeeze=False, layout="constrained"
    )
    for row, (title, curves) in zip(grid, panels.items(), strict=True):
        for axes, cost in zip(row, costs, strict=True):
            for number, (source, points) in enumerate(curves.items()):
                style = {
                    "color": SHADES[number % 4],
                    "marker": "o^sD"[number % 4],
                    "linestyle": ["-", "--", ":"][number % 3],
                }
                _line(axes, points, cost, "accuracy", label=f"trained on {source}", **style)
            axes.set(title=f"tested on {title}", xlabel=AXES[cost], ylabel=AXES["accuracy"])
            _span(axes, "accuracy")
            axes.grid()
    _legend(figure)
    _save(figure, path)


def draw_budgets(found: Sequence[Kept], path: Path) -> None:
    """Samples over their limit against rounds over theirs, a panel a pool and a point a way and budget."""
    pools = sorted(dict.fromkeys(kept.pool for kept in found), key=lambda pool: "__" in pool)  # models' means first
    rows = -(-len(pools) // 2)
    figure, grid = pyplot.subplots(rows, 2, figsize=(WIDTH, ROW_HEIGHT * rows), squeeze=False, layout="constrained")
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
    _save(figure, path)


def draw_explanation(panels: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]], path: Path) -> None:
    """A row of scatter plots for each title, a point a question: samples drawn against what the x-axis names."""
    columns = len(next(iter(panels.values())))
    figure, grid = pyplot.subplots(
        len(panels), columns, figsize=(WIDTH, ROW_HEIGHT * len(panels)), squeeze=False, layout="constrained"
    )
    for row, (title, plots) in zip(grid, panels.items(), strict=True):
        for axes, (label, points) in zip(row, plots.items(), strict=True):
            axes.scatter(*zip(*points, strict=True), s=18, alpha=0.6, color=METHODS["rl"][1], edgecolors="none")
            axes.set(title=title, xlabel=label, ylabel="samples drawn (mean)", ylim=(0, None))
            axes.grid()
    _save(figure, path)


def draw_surface(controllers: Mapping[str, Controller], budget: int, path: Path) -> None:
    """What controllers decide where two answers have all the votes: leader's against runner-up's, a panel each."""
    figure, row = pyplot.subplots(
        1, len(controllers), figsize=(WIDTH, 5.2), squeeze=False, layout="constrained", sharey=True
    )
    for axes, (title, controller) in zip(row[0], controllers.items(), strict=True):
        asked = np.full((budget // 2 + 1, budget + 1), np.nan)
        for second, first in np.ndindex(asked.shape):
            if second <= first and 0 < first + second < budget:
                tally = Tally(budget)
                tally.add_round(["a"] * first + ["b"] * second)
                asked[second, first] = controller.next_round(tally)
        picture = axes.imshow(asked, origin="lower", cmap="viridis", vmin=0, vmax=16, aspect="auto")
        for second, first in np.argwhere(~np.isnan(asked)):
            number = int(asked[second, first])
            axes.text(
                first, second, number, ha="center", va="center", fontsize=6, color="white" if number < 9 else "black"
            )
        axes.set(title=title, xlabel="leader's votes")
    row[0][0].set_ylabel("runner-up's votes")
    figure.colorbar(picture, ax=row[0].tolist(), label="how many more to draw (0: stop)")
    _save(figure, path)


def draw_reliability(confidence: Mapping[str, Reliability], certainty: Mapping[str, Reliability], path: Path) -> None:
    """Confidence and certainty by decile against what came true: a line for each number of draws, and the diagonal."""
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(WIDTH, WIDTH / 2), layout="constrained")
    after = {name: known for name, known in confidence.items() if name.startswith("after")}
    _draw_deciles(left, after, "confidence", "agreement with the full vote (%)")
    _draw_deciles(right, certainty, "certainty", "agreement with the majority of all responses (%)")
    _save(figure, path)


def _draw_deciles(axes: Axes, reliabilities: Mapping[str, Reliability], what: str, truth: str) -> None:
    axes.plot([0, 100], [0, 100], color=INK, linewidth=1, linestyle="--", label="perfect")
    for number, (name, known) in enumerate(reliabilities.items()):
        deciles = known.deciles
        axes.plot(
            [decile["confidence"] for decile in deciles],
            [decile["agreement"] for decile in deciles],
            color=SHADES[number % 4],
            marker="o^sD"[number % 4],
            label=f"{name} (error {known.calibration_error:.1f} points)",
        )
    axes.set(xlabel=f"{what} (%)", ylabel=truth, title=f"Reliability of the {what}")
    axes.grid()
    axes.legend()


def _line(axes: Axes, points: Sequence[Point], cost: str, quality: str, label: str, color: str, **style: Any) -> None:
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


def _save(figure: Figure, path: Path) -> None:
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
    _save(figure, path)


SIDES = ((7, 4), (7, -13), (-13, 4), (-13, -13))
"""Where a number may stand beside its mark, in points."""


def _aside(mark: tuple[float, float], taken: Sequence[tuple[float, float]]) -> tuple[int, int]:
    """The first side of a mark with nothing else near it, or that with the most room."""
    return max(SIDES, key=lambda side: min(25, *(dist((mark[0] + side[0], mark[1] + side[1]), one) for one in taken)))


def draw_methods(points: Mapping[str, tuple[float, float, float]], labels: tuple[str, str], path: Path) -> None:
    """What each method takes against how long, and beside it how often it agrees with the full vote, a row a method."""
    figure, (left, right) = pyplot.subplots(
        1, 2, figsize=(WIDTH, ROW_HEIGHT * 1.15), width_ratios=(1.5, 1), layout="constrained"
    )
    kinds = {"rounds": (BLUE, "o"), "flow by launch": (RED, "*"), "flow by arrival": (ORANGE, "^")}
    kinds |= {"its_hub": (GREEN, "D"), "SC": LOOKS["sc"]}
    numbers = range(1, len(points) + 1)
    most = [max(place) for place in zip(*points.values(), strict=True)]
    wide, high = 72 * WIDTH * 0.45 / most[0], 72 * ROW_HEIGHT / most[1]  # about how many points a unit takes
    taken = [(latency * wide, tokens * high) for latency, tokens, _ in points.values()]
    for number, (name, (latency, tokens, agreement)) in zip(numbers, points.items(), strict=True):
        colour, marker = next(look for start, look in kinds.items() if name.startswith(start))
        left.scatter([latency], [tokens], s=80, marker=marker, color=colour)
        mark = taken[number - 1]
        side = _aside(mark, [*taken[: number - 1], *taken[number:]])
        taken.append((mark[0] + side[0], mark[1] + side[1]))
        left.annotate(f"{number}", (latency, tokens), side, textcoords="offset points")
        right.scatter([agreement], [number], s=60, marker=marker, color=colour)
        right.annotate(
            f"{agreement:.1f}", (agreement, number), (-8, 0), textcoords="offset points", ha="right", va="center"
        )
    left.set(xlabel=labels[0], ylabel=labels[1], xlim=(0, 1.08 * most[0]), ylim=(0, 1.08 * most[1]))
    right.set_yticks(numbers, [f"{name}  {number}" for number, name in zip(numbers, points, strict=True)])
    right.invert_yaxis()
    lowest = min(agreement for _, _, agreement in points.values())
    right.set(xlabel=AXES["agreement"], xlim=(min(90, lowest) - 6, 101))
    for axes in (left, right):
        axes.grid()
    _save(figure, path)


def draw_headline(groups: Mapping[str, Mapping[str, Mapping[str, float]]], path: Path) -> None:
    """Samples, rounds and agreement beside each other: a row of panels a group of pools, a line a method."""
    panels = {
        "samples": "samples for a question",
        "rounds": "rounds, one after the other",
        "agreement": AXES["agreement"],
    }
    figure, grid = pyplot.subplots(
        len(groups), 3, figsize=(WIDTH, 1.1 + 1.75 * len(groups)), squeeze=False, sharex="col", layout="constrained"
    )
    for row, (title, methods) in zip(grid, groups.items(), strict=True):
        names = list(methods)
        colours = [LOOKS[name][0] for name in names]
        for axes, metric in zip(row, panels, strict=True):
            values = [methods[name][metric] for name in names]
            if metric == "agreement":
                for place, (name, value) in enumerate(zip(names, values, strict=True)):
                    axes.plot([value], [place], marker=LOOKS[name][1], color=LOOKS[name][0], markersize=9)
                axes.set_xlim(min(90, min(values) - 1), 100.6)
            else:
                axes.barh(names, values, color=colours, height=0.66)
                axes.set_xlim(0, 1.18 * max(values))
            for place, value in enumerate(values):
                text = f"{value:.1f}"
                offset, side = ((-9, 0), "right") if metric == "agreement" else ((4, 0), "left")
                axes.annotate(text, (value, place), offset, textcoords="offset points", va="center", ha=side)
            axes.set_ylim(len(names) - 0.4, -0.6)
            axes.set_yticks(range(len(names)), names if axes is row[0] else [""] * len(names))
            axes.grid(axis="x")
        row[0].set_title(title, loc="left", fontweight="bold")
    for axes, label in zip(grid[-1], panels.values(), strict=True):
        axes.set_xlabel(label)
    _save(figure, path)


def draw_learning(lessons: Sequence[Lesson], path: Path) -> None:
    """Samples and agreement against the number of questions seen, a row a pool: learning, and without."""
    figure, grid = pyplot.subplots(
        len(lessons), 2, figsize=(WIDTH, 2.9 * len(lessons)), squeeze=False, layout="constrained"
    )
    for row, lesson in zip(grid, lessons, strict=True):
        ways = (("without", lesson.staying, METHODS["sc"][1]), ("learning", lesson.learning, METHODS["plan"][1]))
        for name, courses, colour in ways:
            seen, samples, agreement = smoothed(courses)
            row[0].plot(seen, samples, color=colour, label=name)
            row[1].plot(seen, agreement, color=colour, label=name)
        row[0].set(title=lesson.pool, xlabel="questions seen", ylabel="samples", ylim=(0, None))
        row[1].set(title=lesson.pool, xlabel="questions seen", ylabel="agreement with the full vote (%)")
        _span(row[1], "agreement")
        for axes in row:
            axes.grid()
            axes.legend(loc="lower right")
    _save(figure, path)
