"""Pictures that the documentation alone shows: of methods side by side, and of what controllers decide."""

from collections.abc import Mapping, Sequence
from math import dist
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot

from suffice.controllers import Controller
from suffice.report.figures import ROW_HEIGHT, WIDTH, panels_grid, save_figure
from suffice.report.style import BLACK, BLUE, GREEN, LOOKS, ORANGE, RED
from suffice.tally import Tally


def draw_surface(controllers: Mapping[str, Controller], budget: int, path: Path) -> None:
    """What controllers decide where two answers have all the votes: leader's against runner-up's, a panel each."""
    figure, row = panels_grid(1, len(controllers), height=5.2, sharey=True)
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
    save_figure(figure, path)


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
    right.set(xlabel="agreement with the full vote (%)", xlim=(min(90, lowest) - 6, 101))
    for axes in (left, right):
        axes.grid()
    save_figure(figure, path)


def draw_server(rows: Mapping[str, Sequence[Mapping[str, Any]]], path: Path) -> None:
    """What each way to ask a server comes to, a line a way: n=1 is left out, beside which all others are nothing."""
    panels = {
        ("load", "a_second"): "under load:\nquestions a second",
        ("idle", "p50"): "idle: seconds for\na question, p50",
        ("idle", "tokens"): "idle: tokens\nfor a question",
    }
    told = {part: {row["way"]: row for row in rows[part] if "tokens" in row} for part in rows}
    names = [name for name in dict.fromkeys([*told["load"], *told["idle"]]) if name != "n=1"]
    figure, row = pyplot.subplots(1, len(panels), figsize=(WIDTH, 0.9 + 0.3 * len(names)), layout="constrained")
    colours = [RED if "auto" in name else BLUE if "plan" in name or "gateway" in name else BLACK for name in names]
    for axes, ((part, metric), label) in zip(row, panels.items(), strict=True):
        values = [told[part].get(name, {}).get(metric) for name in names]
        axes.barh(names, [value or 0 for value in values], color=colours, height=0.66)
        for place, value in enumerate(values):
            text = "not asked" if value is None else f"{value:,.0f}" if metric == "tokens" else f"{value:.2f}"
            axes.annotate(text, (value or 0, place), (4, 0), textcoords="offset points", va="center")
        axes.set(xlabel=label, xlim=(0, 1.25 * max(filter(None, values), default=1)), ylim=(len(names) - 0.4, -0.6))
        axes.set_yticks(range(len(names)), names if axes is row[0] else [""] * len(names))
        axes.grid(axis="x")
    save_figure(figure, path)


def draw_headline(groups: Mapping[str, Mapping[str, Mapping[str, float]]], path: Path) -> None:
    """Samples, rounds and both agreements beside each other: a row of panels a group of pools, a line a method."""
    panels = {
        "samples": "samples for a question",
        "rounds": "rounds, one after the other",
        "agreement": "agreement with the full\nvote of the same draws (%)",
        "agreement_independent": "agreement with an\nindependent full vote (%)",
    }
    figure, grid = pyplot.subplots(
        len(groups),
        len(panels),
        figsize=(WIDTH, 1.1 + 1.75 * len(groups)),
        squeeze=False,
        sharex="col",
        layout="constrained",
    )
    for row, (title, methods) in zip(grid, groups.items(), strict=True):
        names = list(methods)
        colours = [LOOKS[name][0] for name in names]
        for axes, metric in zip(row, panels, strict=True):
            values = [methods[name][metric] for name in names]
            share = metric.startswith("agreement")
            if share:
                for place, (name, value) in enumerate(zip(names, values, strict=True)):
                    axes.plot([value], [place], marker=LOOKS[name][1], color=LOOKS[name][0], markersize=9)
                axes.set_xlim(50, 102)
            else:
                axes.barh(names, values, color=colours, height=0.66)
                axes.set_xlim(0, 1.18 * max(values))
            for place, value in enumerate(values):
                text = f"{value:.1f}"
                offset, side = ((-9, 0), "right") if share else ((4, 0), "left")
                axes.annotate(text, (value, place), offset, textcoords="offset points", va="center", ha=side)
            axes.set_ylim(len(names) - 0.4, -0.6)
            axes.set_yticks(range(len(names)), names if axes is row[0] else [""] * len(names))
            axes.grid(axis="x")
        row[0].set_title(title, loc="left", fontweight="bold")
    for axes, label in zip(grid[-1], panels.values(), strict=True):
        axes.set_xlabel(label)
    save_figure(figure, path)
