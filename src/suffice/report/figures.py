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

from suffice.controllers import Controller
from suffice.experiments.budgets import Kept
from suffice.experiments.sweeps import Curves, Point
from suffice.replay import Advice, Course, Lesson, Reliability
from suffice.tally import Tally

matplotlib.use("Agg")

METHODS = {
    "sc": ("SC", "#7f7f7f"),
    "asc": ("ASC", "#e6862a"),
    "esc": ("ESC", "#3c9d57"),
    "rl": ("RL-guided", "#2f66c5"),
    "rl_rounds": ("RL-guided, rounds cost too", "#12306b"),
    "plan": ("exact plan", "#c0392b"),
}
MARKERS = {"sc": "s", "asc": "^", "esc": "D", "rl": "o", "rl_rounds": "v", "plan": "*"}
AXES = {
    "accuracy": "accuracy (%)",
    "agreement": "agreement with the full vote (%)",
    "rounds": "rounds",
    "samples": "samples",
    "sequential_tokens": "sequential tokens (thousands)",
    "total_tokens": "total tokens (thousands)",
}
SHADES = ["#2f66c5", "#7fa8ea", "#12306b", "#5bc0de"]
"""Controllers learned from different models are one method, told apart by shade and line."""

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
                axes.set_xscale("log")
                axes.xaxis.set_major_formatter("{x:g}")
            axes.grid(alpha=0.3)
            axes.legend()
    _save(figure, path)


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
            axes.grid(alpha=0.3)
            axes.legend()
    _save(figure, path)


def draw_budgets(found: Sequence[Kept], path: Path) -> None:
    """Samples over their limit against rounds over theirs, a panel a pool and a point a way and budget; the left
    lower quarter is what was asked for."""
    pools = list(dict.fromkeys(kept.pool for kept in found))
    rows = -(-len(pools) // 2)
    figure, grid = pyplot.subplots(rows, 2, figsize=(WIDTH, 4.4 * rows), squeeze=False, layout="constrained")
    for axes, pool in zip(grid.flat, pools, strict=False):
        for number, way in enumerate(dict.fromkeys(kept.way for kept in found)):
            mine = [kept for kept in found if (kept.pool, kept.way) == (pool, way)]
            axes.scatter(
                [fmean(result.samples for result in kept.results) / kept.limits[0] for kept in mine],
                [fmean(result.rounds for result in kept.results) / kept.limits[1] for kept in mine],
                s=[12 * kept.limits[0] for kept in mine],
                color=(METHODS["rl"][1], "#7fa8ea", METHODS["plan"][1], "#e8a49b")[number],
                marker="o^*v"[number],
                alpha=0.8,
                label=way,
            )
        axes.axvline(1, color="black", linewidth=0.8)
        axes.axhline(1, color="black", linewidth=0.8)
        axes.set(title=pool, xlabel="samples / the most on average", ylabel="rounds / the most on average")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    for axes in grid.flat[len(pools) :]:
        axes.set_visible(False)
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
            axes.grid(alpha=0.3)
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
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(13.0, 6.5), layout="constrained")
    after = {name: known for name, known in confidence.items() if name.startswith("after")}
    _draw_deciles(left, after, "confidence", "agreement with the full vote (%)")
    _draw_deciles(right, certainty, "certainty", "agreement with the majority of all responses (%)")
    _save(figure, path)


def _draw_deciles(axes: Axes, reliabilities: Mapping[str, Reliability], what: str, truth: str) -> None:
    axes.plot([0, 100], [0, 100], color="#bbbbbb", linewidth=1, label="perfect")
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
    axes.grid(alpha=0.3)
    axes.legend()


def _line(axes: Axes, points: Sequence[Point], cost: str, quality: str, label: str, color: str, **style: Any) -> None:
    """A curve; where its points are means over seeds, with a band and bars of one standard deviation."""
    scale = 1000 if cost.endswith("tokens") else 1
    known = [p for p in points if p.figures[cost] is not None and p.figures[quality] is not None]
    costs, values = (np.array([p.figures[metric] for p in known], float) for metric in (cost, quality))
    spread = max((p.seeds for p in known), default=1)
    if spread > 1:
        label += f" (± s.d. of {spread} seeds)"
    axes.plot(costs / scale, values, label=label, color=color, markersize=5, linewidth=1.4, **style)
    if spread > 1:
        wide, high = (np.array([p.deviations.get(metric) or 0.0 for p in known]) for metric in (cost, quality))
        axes.fill_between(costs / scale, values - high, values + high, color=color, alpha=0.18, linewidth=0)
        axes.errorbar(
            costs / scale, values, xerr=wide / scale, yerr=high, fmt="none", ecolor=color, elinewidth=0.8, alpha=0.6
        )


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path, dpi=DPI)
    pyplot.close(figure)


def draw_front(advice: Advice, path: Path) -> None:
    """Tokens against latency: all that was swept, the front, and what is advised."""
    figure, axes = pyplot.subplots(figsize=(WIDTH * 0.7, ROW_HEIGHT * 1.2), layout="constrained")
    kinds = {
        "rounds": ("rounds", "#7f7f7f"),
        "launch": ("flow, by launch", "#2f66c5"),
        "arrival": ("flow, by arrival", "#e6862a"),
    }
    for kind, (label, colour) in kinds.items():
        some = [choice for choice in advice.choices if (choice.flow.order if choice.flow else "rounds") == kind]
        axes.scatter([one.latency for one in some], [one.tokens for one in some], s=18, color=colour, label=label)
    axes.plot(
        [one.latency for one in advice.front],
        [one.tokens for one in advice.front],
        color="black",
        linewidth=1,
        label="front, at the agreement asked for",
    )
    chosen = advice.chosen
    axes.scatter([chosen.latency], [chosen.tokens], s=160, marker="*", color="#c0392b", zorder=3, label="advised")
    axes.set(xlabel="latency (tokens on the critical path)", ylabel="tokens spent", ylim=(0, None), xlim=(0, None))
    axes.legend(frameon=False)
    _save(figure, path)


def draw_methods(points: Mapping[str, tuple[float, float]], labels: tuple[str, str], path: Path) -> None:
    """One point a method: what it takes against how long."""
    figure, axes = pyplot.subplots(figsize=(WIDTH * 0.95, ROW_HEIGHT * 1.1), layout="constrained")
    shades = {"rounds": "#7fa8ea", "flow by launch": "#c0392b", "flow by arrival": "#e6862a", "its_hub": "#3c9d57"}
    markers = iter("oDP^v<>Xs*" * len(points))
    for name, (latency, tokens) in points.items():
        colour = next((shade for start, shade in shades.items() if name.startswith(start)), "#4d4d4d")
        axes.scatter([latency], [tokens], s=90, marker=next(markers), color=colour, edgecolor="black", label=name)
    most = [max(place) for place in zip(*points.values(), strict=True)]
    axes.set(xlabel=labels[0], ylabel=labels[1], xlim=(0, 1.08 * most[0]), ylim=(0, 1.08 * most[1]))
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    _save(figure, path)


SMOOTH = 8
"""A learning curve's points are means over this part of the questions."""


def draw_learning(lessons: Sequence[Lesson], path: Path) -> None:
    """Samples and agreement against the number of questions seen, a row a pool: learning, and without."""
    figure, grid = pyplot.subplots(
        len(lessons), 2, figsize=(WIDTH, 2.9 * len(lessons)), squeeze=False, layout="constrained"
    )
    for row, lesson in zip(grid, lessons, strict=True):
        ways = (("without", lesson.staying, METHODS["sc"][1]), ("learning", lesson.learning, METHODS["plan"][1]))
        for name, courses, colour in ways:
            seen, samples, agreement = _smoothed(courses)
            row[0].plot(seen, samples, color=colour, label=name)
            row[1].plot(seen, agreement, color=colour, label=name)
        row[0].set(title=lesson.pool, xlabel="questions seen", ylabel="samples", ylim=(0, None))
        row[1].set(title=lesson.pool, xlabel="questions seen", ylabel="agreement with the full vote (%)")
        row[1].set_ylim(min(97, row[1].get_ylim()[0]), 100.2)
        for axes in row:
            axes.grid(alpha=0.3)
            axes.legend(loc="lower right")
    _save(figure, path)


def _smoothed(courses: Sequence[Course]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Running means over the questions, and over the orders; and the middle of each."""
    samples = np.mean([course.samples for course in courses], axis=0)
    agreement = 100 * np.mean([course.agrees for course in courses], axis=0)
    window = max(1, len(samples) // SMOOTH)
    kernel = np.ones(window) / window
    seen = np.arange(len(samples) - window + 1) + (window + 1) / 2
    return seen, np.convolve(samples, kernel, "valid"), np.convolve(agreement, kernel, "valid")
