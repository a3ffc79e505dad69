"""Figures 2, 4 and 7 of the paper: sweeps of each method's parameter."""

from collections.abc import Mapping, Sequence

from suffice.controllers import Controller
from suffice.experiments.bench import Bench, Experiment, Jobs, by_model
from suffice.penalties import Penalties
from suffice.planning import Plan
from suffice.replay.evaluate import spread
from suffice.report.html import Axis, Point, Section, panel, percent, plot
from suffice.report.markdown import Page, Row, pictures, spreads
from suffice.report.style import looks
from suffice.training.setting import Setting

PENALTIES = (0.001, 0.005, 0.0075, 0.015, 0.02, 0.03)
ROUND_PENALTY = 0.01  # in the second sweep of learned controllers

THRESHOLDS = (0.6, 0.65, 0.75, 0.8, 0.87, 0.9, 0.92, 0.95, 0.98, 0.99)
WINDOWS = (2, 3, 4, 5, 7)
SIZES = (1, 2, 4, 8, 12, 16, 20, 24, 28, 32)

QUALITIES = {"accuracy": percent("accuracy"), "agreement": percent("agreement with the full vote")}
COSTS = {
    "rounds": Axis("rounds", log=True),
    "samples": Axis("samples", zero=True),
    "sequential_tokens": Axis("sequential tokens (thousands)", log=True),
    "total_tokens": Axis("total tokens (thousands)", zero=True),
}
FIGURES = (*QUALITIES, *COSTS)

LABELS = {
    "sc": "SC",
    "asc": "ASC",
    "esc": "ESC",
    "rl": "RL-guided",
    "rl_rounds": "RL-guided, rounds cost too",
    "plan": "exact plan",
}

Drawing = tuple[Sequence[str], str]
"""The costs that are drawn beside each other, and the quality against them."""

DRAWN: Mapping[str, Drawing] = {
    "samples": (("rounds", "samples"), "accuracy"),
    "tokens": (("sequential_tokens", "total_tokens"), "accuracy"),
    "agreement": (("rounds", "samples"), "agreement"),
}


def scaling_jobs(bench: Bench) -> Jobs:
    """Controllers with the bench's price of a round, and with dear rounds."""
    return sweep_jobs(bench, {"rl": bench.setting.penalties.round, "rl_rounds": ROUND_PENALTY})


def scaling(bench: Bench) -> Page:
    rows = swept(bench, ("sc", "asc", "esc"), scaling_jobs(bench))
    return sweeps_page(bench, "scaling", rows, DRAWN)


def draw_penalties(bench: Bench) -> list[float]:
    return sorted({*PENALTIES, bench.setting.penalties.draw})


def sweep_jobs(bench: Bench, sweeps: Mapping[str, float]) -> Jobs:
    return bench.jobs(
        {
            (method, f"penalty_draw={draw}"): {"penalties": Penalties(draw, round_)}
            for method, round_ in sweeps.items()
            for draw in draw_penalties(bench)
        }
    )


def swept(bench: Bench, methods: Sequence[str], jobs: Jobs) -> list[Row]:
    """Sweep rules, and the controllers of these jobs, on every test pool: a row a setting."""
    rules = {(method, parameter): rule for method in methods for parameter, rule in _sweep(bench, method).items()}
    return [
        {"pool": pool, "method": method, "parameter": parameter, **spreads([[one] for one in results], FIGURES)}
        for pool, measured in bench.measure(jobs, rules).items()
        for (method, parameter), results in measured.items()
    ]


def _sweep(bench: Bench, method: str) -> dict[str, str | Controller]:
    """The planner has the learned controllers' price of a round, and the bench's own actions."""
    sizes = sorted({max(1, round(size * bench.budget / SIZES[-1])) for size in SIZES})
    rules = {"sc": ("draws", sizes), "asc": ("threshold", THRESHOLDS), "esc": ("window", WINDOWS)}
    if method in rules:
        name, values = rules[method]
        return {f"{name}={value}": f"{method}:{name}={value}" for value in values}
    own = bench.setting
    actions = Plan.actions if own.actions == Setting.actions else own.actions
    return {f"penalty_draw={penalty}": Plan(penalty, own.penalties.round, actions) for penalty in draw_penalties(bench)}


def sweeps_page(bench: Bench, name: str, rows: list[Row], drawn: Mapping[str, Drawing]) -> Page:
    caption = seeds_told(bench, "Learned controllers")
    if any(row["method"] == "rl_rounds" for row in rows):
        caption += " " + seeds_told(bench, f"Those with {ROUND_PENALTY} for a round")
    section = curves_plot(rows)
    files = {
        f"{name}_{model}_{suffix}.png": by_axes(section, costs, quality, [pool.name for pool in pools])
        for model, pools in by_model(bench.test).items()
        for suffix, (costs, quality) in drawn.items()
    }
    return Page(f"{caption}\n{pictures(files)}", rows, (), [section], files)


def seeds_told(bench: Bench, which: str) -> str:
    if bench.seeds == 1:
        return f"{which} are of one seed."
    return f"{which} are means over {bench.seeds} seeds; bands and bars are ± one standard deviation over these."


def curves_plot(rows: Sequence[Row], labels: Mapping[str, str] = LABELS) -> Section:
    """Plot quality against cost, a line a method and a panel a pool; bands are deviations over the seeds."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    styles = dict(zip(methods, looks(methods), strict=True))
    every = [*_means(rows), *rows]
    panels = []
    for pool in dict.fromkeys(row["pool"] for row in every):
        points: dict[str, Sequence[Point]] = {}
        for method in methods:
            own = [row for row in every if (row["pool"], row["method"]) == (pool, method)]
            several = any(row["seeds"] > 1 for row in own)
            points[labels[method] + " (± s.d. over seeds)" * several] = [_point(row, several) for row in own]
        panels.append(panel(pool, points, line=True, styles=[styles[method] for method in methods]))
    note = "Up and to the left is better; point at a mark to read it."
    return plot("", list(COSTS.values()), list(QUALITIES.values()), panels, note, spread=len(FIGURES))


def _point(row: Row, several: bool) -> Point:
    def column(name: str) -> float | None:
        figure: float | None = row.get(name)
        return figure / 1000 if figure and "tokens" in name else figure

    metrics = (*COSTS, *QUALITIES)
    deviations = [column(f"{metric}_std") or 0.0 for metric in metrics]
    return [row["parameter"], *map(column, metrics), *deviations * several]


def _means(rows: Sequence[Row]) -> list[Row]:
    """The means over the pools, a row a setting."""
    settings: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        settings.setdefault((row["method"], row["parameter"]), []).append(row)
    return [
        {"pool": "", "method": method, "parameter": parameter, "seeds": 1}
        | {metric: spread([row.get(metric) for row in some])[0] for metric in FIGURES}
        for (method, parameter), some in settings.items()
    ]


def by_axes(section: Section, costs: Sequence[str], quality: str, panels: Sequence[str]) -> list[Section]:
    """Some panels of a plot, once for each cost."""
    shown = [panel for panel in section["panels"] if panel["name"] in panels]
    x = dict(zip(COSTS, section["x"], strict=True))
    y = dict(zip(QUALITIES, section["y"], strict=True))
    return [{**section, "panels": shown, "x": [x[cost]], "y": [y[quality]]} for cost in costs]


EXPERIMENT = Experiment("Scaling curves", scaling, scaling_jobs)
