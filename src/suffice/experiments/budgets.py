"""The paper's proposition: budgets on average, met by penalties that are found or chosen."""

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from suffice.controllers import Controller
from suffice.experiments.bench import Bench, Experiment, Jobs, Training, by_model, names_of
from suffice.experiments.scaling import PENALTIES, ROUND_PENALTY
from suffice.penalties import Penalties
from suffice.planning import Plan
from suffice.replay import Result, evaluate, mean_over_pools
from suffice.replay.targets import SEARCH_REPEATS, meet
from suffice.report.html import Axis, Point, Section, panel, plot
from suffice.report.markdown import Page, Row, cell, markdown_table, pictures, spreads
from suffice.report.style import BLACK, BLUE, ORANGE, RED, SKY
from suffice.tally import DEFAULT_BUDGET

GRID = ((12.0, 3.5), (12.0, 6.0), (16.0, 4.5), (16.0, 8.0), (20.0, 5.5), (20.0, 8.0))
"""Mean samples and rounds, of 32 draws: rounds of at most 4 can keep to each."""

FIXED_PENALTIES = tuple(Penalties(draw, round_) for draw, round_ in product(PENALTIES, (0.0, ROUND_PENALTY)))
"""Those of `scaling`: the best for a budget is chosen among them."""

SLACK = 0.05  # a mean may be over its budget by this share

WAYS = ("PPO-Lagrangian", "PPO, best fixed", "plan, dual search", "plan, best fixed")
FIGURES = ("samples", "rounds", "agreement", "accuracy")

MARKS = ((BLACK, "s"), (BLUE, "o"), (SKY, "^"), (RED, "*"), (ORANGE, "v"))
"""Of the limits and the ways: what learns in blues, what plans in reds."""

Limits = tuple[float, float]  # the most samples and the most rounds on average


def budgets_jobs(bench: Bench) -> Jobs:
    fixed = {penalties: {"penalties": penalties} for penalties in FIXED_PENALTIES}
    return bench.jobs({**{limits: {"means": limits} for limits in _grid(bench)}, **fixed})


def budgets(bench: Bench) -> Page:
    rows = kept(bench)
    section = _plotted(rows)
    text = (
        "Penalties are found, or chosen among fixed ones, on the training pools, so that there are so many samples and "
        "rounds on average. On test pools: samples in rounds, agreement with the full vote; **bold** where neither "
        f"mean is over its budget by more than {100 * SLACK:g} %, and how many of the seeds keep to it where there are "
        "several. Pools that are harder than the training pools take more than the mean, others less.\n"
    )
    for model, group in by_model(bench.test).items():
        columns = [model, *(pool.name for pool in group)] if len(group) > 1 else [group[0].name]
        heads = ["mean" if name == model else name.removeprefix(f"{model}__") for name in columns]
        lines = []
        for limits, way in product(sorted(_grid(bench)), WAYS):
            own = [row for row in rows if (row["samples_limit"], row["rounds_limit"], row["way"]) == (*limits, way)]
            cells = [_kept_cell(row) for name in columns for row in own if row["pool"] == name]
            among = f" of {own[0]['among']}" if own[0]["among"] else ""
            seeds = str(own[0]["seeds"]) if "PPO" in way else ""
            lines.append(["{:g} in {:g}".format(*limits), way + among, seeds, *cells])
        text += f"\n**{model}**\n\n" + markdown_table(["samples in rounds", "", "seeds", *heads], lines)
    return Page(text + pictures(["budgets.png"]), rows, (), [section], {"budgets.png": [section]})


def kept(bench: Bench) -> list[Row]:
    """How each way keeps to each budget on test pools, and in the mean over a model's."""
    found = _settled(bench)
    measured: dict[str, dict[tuple[Limits, str], list[Result]]] = {}
    for pool in bench.test:
        own = found[names_of(bench.training_for(pool))]
        results = iter(bench.evaluate(pool, [controller for some in own.values() for controller in some]))
        measured[pool.name] = {key: [next(results) for _ in some] for key, some in own.items()}
    rows = [
        kept_row(limits, way, pool, [[one] for one in some])
        for pool, results_of in measured.items()
        for (limits, way), some in results_of.items()
    ]
    for (model, pools), limits, way in product(by_model(bench.test).items(), _grid(bench), WAYS):
        if len(pools) > 1:
            runs = zip(*(measured[pool.name][limits, way] for pool in pools), strict=True)
            rows.append(kept_row(limits, way, model, list(runs)))
    return rows


def _settled(bench: Bench) -> dict[str, dict[tuple[Limits, str], Sequence[Controller]]]:
    """The controllers of each budget and way, by training pools."""
    learned = bench.learned(budgets_jobs(bench))
    grid, seeds, actions = _grid(bench), range(bench.seeds), bench.setting.actions
    tested = {names_of(bench.training_for(pool)): pool for pool in bench.test}
    found: dict[str, dict[tuple[Limits, str], Sequence[Controller]]] = {}
    with bench.bar("penalties for budgets", len(tested) * len(grid)) as advance:
        for names, pool in tested.items():
            training = bench.training_for(pool)
            choosers = [
                _chooser(bench, training, [learned[pool.name, penalties, seed] for penalties in FIXED_PENALTIES])
                for seed in seeds
            ]
            plans = _chooser(bench, training, [Plan(p.draw, p.round, actions) for p in FIXED_PENALTIES])
            own = found[names] = {}
            for limits in grid:
                own[limits, WAYS[0]] = [learned[pool.name, limits, seed] for seed in seeds]
                own[limits, WAYS[1]] = [best(limits) for best in choosers]
                planned = meet(Plan(actions=actions), bench.budget, training, *limits, None)
                own[limits, WAYS[2]] = [planned.controller]
                own[limits, WAYS[3]] = [plans(limits)]
                advance(1)
    return found


def kept_row(limits: Limits, way: str, pool: str, runs: Sequence[Sequence[Result]]) -> Row:
    """Means over the seeds, and how many of them keep to the budget."""
    figures = spreads(runs, FIGURES)
    means = [[mean_over_pools(run, name) or 0.0 for name in ("samples", "rounds")] for run in runs]
    met = sum(_excess(limits, samples, rounds) <= SLACK for samples, rounds in means)
    among = len(FIXED_PENALTIES) if "best fixed" in way else 0
    about = {"samples_limit": limits[0], "rounds_limit": limits[1], "way": way, "pool": pool}
    return about | {"seeds": len(runs), "among": among, "kept": met} | figures


def _chooser(bench: Bench, training: Training, controllers: Sequence[Controller]) -> Callable[[Limits], Controller]:
    """Choose the controller that agrees most within limits on the training pools, or is least over them."""
    results = evaluate(training, controllers, budget=bench.budget, repeats=SEARCH_REPEATS, confidence=False)
    columns = np.array([(result.samples, result.rounds, result.agreement) for result in results])
    means = columns.reshape(len(training), len(controllers), 3).mean(axis=0).tolist()

    def best(limits: Limits) -> Controller:
        merits = [(-max(0.0, _excess(limits, samples, rounds)), agreement) for samples, rounds, agreement in means]
        return controllers[merits.index(max(merits))]

    return best


def _excess(limits: Limits, samples: float, rounds: float) -> float:
    """By which share a mean is over its limit, whichever is further."""
    return max(samples / limits[0], rounds / limits[1]) - 1


def _grid(bench: Bench) -> list[Limits]:
    return [(samples * bench.budget / DEFAULT_BUDGET, rounds) for samples, rounds in GRID]


def _kept_cell(row: Row) -> str:
    samples, rounds, agreement = (cell(row, metric) for metric in FIGURES[:3])
    seeds = f" ({row['kept']} of {row['seeds']})" if row["seeds"] > 1 else ""
    mark = "**" if row["kept"] == row["seeds"] else ""
    return f"{mark}{samples} in {rounds}{mark}, {agreement} %{seeds}"


def _plotted(rows: Sequence[Row]) -> Section:
    """A panel a pool, a point a way and budget: what is within the lines keeps to it."""
    panels = []
    for pool in sorted(dict.fromkeys(row["pool"] for row in rows), key=lambda pool: "__" in pool):  # means first
        points: dict[str, Sequence[Point]] = {"the limits": [["", 1, 0, 1], ["", 1, 1, 1], ["", 0, 1, 1]]}
        for way in WAYS:
            own = [row for row in rows if (row["pool"], row["way"]) == (pool, way)]
            points[way] = list(map(_point, own))
        panels.append(panel(pool, points, "the limits", MARKS))
    x = Axis("samples, as a share of their limit", 2, zero=True)
    y = Axis("rounds, as a share of theirs", 2, zero=True)
    return plot("", [x], [y], panels, sizes=3)


def _point(row: Row) -> Point:
    samples, rounds = row["samples_limit"], row["rounds_limit"]
    return [f"{samples:g} samples in {rounds:g} rounds", row["samples"] / samples, row["rounds"] / rounds, samples]


EXPERIMENT = Experiment("Budgets on average", budgets, budgets_jobs)
