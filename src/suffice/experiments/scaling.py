"""Figures 2, 4 and 7 of the paper: sweeps of each method's parameter."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from suffice.controllers import Controller
from suffice.experiments.bench import Bench, Experiment, by_model
from suffice.penalties import Penalties
from suffice.planning import Plan
from suffice.replay import Result, mean_over_pools
from suffice.replay.evaluate import spread
from suffice.report.html import Axis, Section, percent, plot
from suffice.report.markdown import Page, pictures
from suffice.report.style import LOOKS
from suffice.training.setting import Setting, TrainingJob

PENALTIES = (0.001, 0.005, 0.0075, 0.015, 0.02, 0.03)
ROUND_PENALTY = 0.01
"""What a round costs in the second sweep of learned controllers, where it costs nothing in the first."""

THRESHOLDS = (0.6, 0.65, 0.75, 0.8, 0.87, 0.9, 0.92, 0.95, 0.98, 0.99)
WINDOWS = (2, 3, 4, 5, 7)
SIZES = (1, 2, 4, 8, 12, 16, 20, 24, 28, 32)
FIGURES = ("accuracy", "agreement", "rounds", "samples", "sequential_tokens", "total_tokens")


SweepPoint = Mapping[str, Any]
"""One setting of a method as a row: its parameter, its seeds, its figures and their deviations over the seeds."""

Curves = Mapping[str, Sequence[SweepPoint]]
"""The sweep of each method."""

Jobs = Mapping[tuple[str, tuple[str, str], int], TrainingJob]
"""By test pool, method and parameter, and seed."""


def point(parameter: str, runs: Sequence[Sequence[Result]]) -> SweepPoint:
    """Return a setting's row: of each seed the mean over its results, and of these mean and deviation."""
    row: dict[str, Any] = {"parameter": parameter, "seeds": len(runs)}
    for metric in FIGURES:
        row[metric], row[f"{metric}_std"] = spread([mean_over_pools(run, metric) for run in runs])
    return row


def scaling_jobs(bench: Bench) -> Jobs:
    """Controllers with the bench's price of a round, and with dear rounds."""
    return sweep_jobs(bench, {"rl": bench.setting.penalties.round, "rl_rounds": ROUND_PENALTY})


def scaling(bench: Bench) -> Mapping[str, Curves]:
    """Sweeps of each method's parameter, by test pool."""
    return swept(bench, ("sc", "asc", "esc"), scaling_jobs(bench))


def draw_penalties(bench: Bench) -> list[float]:
    """What a draw costs in a sweep: the paper's penalties, and the bench's own."""
    return sorted({*PENALTIES, bench.setting.penalties.draw})


def sweep_jobs(bench: Bench, sweeps: Mapping[str, float]) -> Jobs:
    """The sweeps of learned controllers, by what a round costs in them."""
    return bench.jobs(
        {
            (method, f"penalty_draw={draw}"): {"penalties": Penalties(draw, round_)}
            for method, round_ in sweeps.items()
            for draw in draw_penalties(bench)
        }
    )


def swept(bench: Bench, methods: Sequence[str], jobs: Jobs) -> Mapping[str, Curves]:
    """Sweep rules, and the learned controllers of these jobs, on every test pool."""
    rules = {(method, parameter): rule for method in methods for parameter, rule in _sweep(bench, method).items()}
    found: dict[str, dict[str, list[SweepPoint]]] = {}
    for pool, measured in bench.measure(jobs, rules).items():
        curves = found[pool] = {}
        for (method, parameter), results in measured.items():
            curves.setdefault(method, []).append(point(parameter, [[result] for result in results]))
    return found


def _sweep(bench: Bench, method: str) -> dict[str, str | Controller]:
    """The settings of a rule, or of the planner: at the learned controllers' price of a round, and with their actions
    where the bench has its own."""
    sizes = sorted({max(1, round(size * bench.budget / SIZES[-1])) for size in SIZES})
    rules = {"sc": ("draws", sizes), "asc": ("threshold", THRESHOLDS), "esc": ("window", WINDOWS)}
    if method in rules:
        name, values = rules[method]
        return {f"{name}={value}": f"{method}:{name}={value}" for value in values}
    own = bench.setting
    actions = Plan.actions if own.actions == Setting.actions else own.actions
    return {f"penalty_draw={penalty}": Plan(penalty, own.penalties.round, actions) for penalty in draw_penalties(bench)}


def sweeps_page(
    name: str, title: str, drawn: Mapping[str, tuple[Sequence[str], str]], found: Mapping[str, Curves], bench: Bench
) -> Page:
    """The curves as rows and as pictures; of these `drawn` has the names, the costs and the quality."""
    section = curves_plot(title, found)
    files = {
        f"{name}_{model}_{suffix}.png": by_axes(section, costs, quality, [pool.name for pool in pools])
        for model, pools in by_model(bench.test).items()
        for suffix, (costs, quality) in drawn.items()
    }
    rows = [
        {"pool": pool, "method": method, **p}
        for pool, curves in found.items()
        for method, points in curves.items()
        for p in points
    ]
    learned = {
        method: [p for curves in found.values() for p in curves.get(method, [])] for method in ("rl", "rl_rounds")
    }
    caption = seeds_told(learned["rl"], "Learned controllers")
    if learned["rl_rounds"]:
        caption += f" {seeds_told(learned['rl_rounds'], f'Those with {ROUND_PENALTY} for a round')}"
    return Page(f"{caption}\n{pictures(files)}", rows, {}, [section], files)


def seeds_told(points: Sequence[SweepPoint], which: str) -> str:
    """How many seeds the points of learned controllers are means of."""
    counts = sorted({p["seeds"] for p in points})
    if not counts:
        return f"{which}: there are none."
    if counts == [1]:
        return f"{which} are of one seed."
    many = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else f"{counts[0]}"
    return f"{which} are means over {many} seeds; bands and bars are ± one standard deviation over these."


LABELS = {
    "sc": "SC",
    "asc": "ASC",
    "esc": "ESC",
    "rl": "RL-guided",
    "rl_rounds": "RL-guided, rounds cost too",
    "plan": "exact plan",
}
STYLES = {method: (label, *LOOKS[method]) for method, label in LABELS.items()}
"""A label, a colour and a marker for each method."""


AXES = {
    "accuracy": percent(1, "accuracy"),
    "agreement": percent(2, "agreement with the full vote"),
    "rounds": Axis(3, "rounds", log=True),
    "samples": Axis(4, "samples", zero=True),
    "sequential_tokens": Axis(5, "sequential tokens (thousands)", log=True),
    "total_tokens": Axis(6, "total tokens (thousands)", zero=True),
}
"""Of FIGURES, in their order; the columns after them are their deviations."""


def curves_plot(
    title: str, panels: Mapping[str, Curves], styles: Mapping[str, tuple[str, str, str]] = STYLES
) -> Section:
    """Plot quality against cost, a line a method: the mean over the panels first.

    Points that are means over seeds have a band and bars of one standard deviation.
    """

    def column(metric: str, figure: float | None) -> float | None:
        return figure / 1000 if figure and metric.endswith("tokens") else figure

    def series(method: str, points: Sequence[SweepPoint]) -> Section:
        label, colour, marker = styles[method]
        spreads = any(p["seeds"] > 1 for p in points)
        rows: list[list[Any]] = [
            [p["parameter"], *(column(metric, p.get(metric)) for metric in FIGURES)]
            + [column(metric, p.get(f"{metric}_std")) or 0.0 for metric in FIGURES] * spreads
            for p in points
        ]
        look = {"colour": colour, "marker": marker, "line": True, "spread": len(FIGURES) * spreads}
        return {"name": label + " (± s.d. over seeds)" * spreads, **look, "points": rows}

    drawn = [
        {"name": name, "series": [series(method, points) for method, points in curves.items()]}
        for name, curves in {"": _means(panels), **panels}.items()
    ]
    quality, cost = list(AXES.values())[:2], list(AXES.values())[2:]
    return plot(title, cost, quality, drawn, "Up and to the left is better; point at a mark to read it.")


def _means(panels: Mapping[str, Curves]) -> Curves:
    """Each setting of each method in the mean over the panels."""
    methods = dict.fromkeys(method for curves in panels.values() for method in curves)
    found = {
        method: zip(*(curves[method] for curves in panels.values() if method in curves), strict=False)
        for method in methods
    }
    return {
        method: [
            {**some[0], "seeds": 1} | {one: spread([p.get(one) for p in some])[0] for one in FIGURES} for some in points
        ]
        for method, points in found.items()
    }


def by_axes(section: Section, costs: Sequence[str], quality: str, panels: Sequence[str]) -> list[Section]:
    """Return some panels of a plot once for each cost, as pictures show them."""
    shown = [panel for panel in section["panels"] if panel["name"] in panels]
    return [{**section, "panels": shown, "x": [asdict(AXES[cost])], "y": [asdict(AXES[quality])]} for cost in costs]


DRAWN = {
    "samples": (("rounds", "samples"), "accuracy"),
    "tokens": (("sequential_tokens", "total_tokens"), "accuracy"),
    "agreement": (("rounds", "samples"), "agreement"),
}


def scaling_page(found: Mapping[str, Curves], bench: Bench) -> Page:
    """Figures 2, 4 and 7, and what a price for rounds does."""
    return sweeps_page("scaling", TITLE, DRAWN, found, bench)


TITLE = "Scaling curves"
EXPERIMENT = Experiment(TITLE, scaling, scaling_page, scaling_jobs)
