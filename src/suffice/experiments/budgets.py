"""The paper's proposition as an experiment: budgets on average, met by penalties that are found or chosen."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from suffice.controllers import Controller
from suffice.experiments.bench import Bench, Experiment, Training, by_model, model_of
from suffice.experiments.scaling import PENALTIES, ROUND_PENALTY
from suffice.penalties import Penalties
from suffice.planning import Plan
from suffice.replay import Result, evaluate, mean_over_pools
from suffice.replay.targets import SEARCH_REPEATS, meet
from suffice.report.html import Axis, Section, plot
from suffice.report.markdown import Page, cell, markdown_table, pictures, spread_columns
from suffice.report.style import BLACK, BLUE, ORANGE, RED, SKY
from suffice.tally import DEFAULT_BUDGET
from suffice.training.setting import TrainingJob

GRID = ((12.0, 3.5), (12.0, 6.0), (16.0, 4.5), (16.0, 8.0), (20.0, 5.5), (20.0, 8.0))
"""Mean samples and mean rounds at a budget of 32: rounds of at most 4 draws can keep to each."""

FIXED_PENALTIES = tuple(Penalties(draw, round_) for draw, round_ in product(PENALTIES, (0.0, ROUND_PENALTY)))
"""Those that `scaling` trains controllers for: the best for a budget is chosen among them."""

SLACK = 0.05
"""A budget counts as kept where no mean is over it by more than this share."""

WAYS = ("PPO-Lagrangian", "PPO, best fixed", "plan, dual search", "plan, best fixed")

BUDGET_MARKS = ((BLUE, "o"), (SKY, "^"), (RED, "*"), (ORANGE, "v"))
"""Of the ways to keep to a budget, in their order: what learns in blues, what plans in reds."""

Limits = tuple[float, float]
"""The most samples and the most rounds on average."""


@dataclass(frozen=True)
class Kept:
    """How one way keeps to one budget on one test pool, or in the mean over a model's: a result, or one a seed."""

    limits: Limits
    way: str
    pool: str
    results: Sequence[Result]
    among: int = 0
    """Of how many fixed penalties the best was chosen."""

    @property
    def met(self) -> int:
        """How many of the results keep to the budget."""
        return sum(_excess(self.limits, result.samples, result.rounds) <= SLACK for result in self.results)


def budgets_jobs(bench: Bench) -> dict[tuple[str, Limits | Penalties, int], TrainingJob]:
    """By training pools, budget or fixed penalties, and seed."""
    jobs: dict[tuple[str, Limits | Penalties, int], TrainingJob] = {}
    for (names, training), seed in product(_trainings(bench).items(), range(bench.seeds)):
        for limits in _grid(bench):
            jobs[names, limits, seed] = bench.job(training, seed=seed, mean_samples=limits[0], mean_rounds=limits[1])
        for penalties in FIXED_PENALTIES:
            jobs[names, penalties, seed] = bench.job(training, penalties, seed=seed)
    return jobs


def budgets(bench: Bench) -> list[Kept]:
    """For each budget: penalties found while PPO learns, found for plans, and chosen among fixed ones for both.

    All is settled on the training pools.
    """
    learned = bench.learned(budgets_jobs(bench))
    found: dict[tuple[str, Limits, str], list[Controller]] = {}
    among: dict[tuple[str, str], int] = {}
    trainings, grid = _trainings(bench), _grid(bench)
    with bench.bar("penalties for budgets", len(trainings) * len(grid)) as advance:
        for names, training in trainings.items():
            mine = {key[1:]: controller for key, controller in learned.items() if key[0] == names}
            by_seed = [
                [one for (what, own), one in mine.items() if own == seed and isinstance(what, Penalties)]
                for seed in range(bench.seeds)
            ]
            most = max(map(len, by_seed))  # a seed with fewer to choose from would seem a worse chooser
            groups = [_chooser(bench, training, some) for some in by_seed if some and len(some) == most]
            among |= {(names, WAYS[1]): most, (names, WAYS[3]): len(FIXED_PENALTIES)}
            plans = _chooser(bench, training, [Plan(p.draw, p.round, bench.setting.actions) for p in FIXED_PENALTIES])
            for limits in grid:
                lagrangian = [one for (what, _), one in mine.items() if what == limits]
                planned = meet(Plan(actions=bench.setting.actions), bench.budget, training, *limits, None).controller
                chosen: tuple[list[Controller], ...] = (
                    [*lagrangian],
                    [best(limits) for best in groups],
                    [planned],
                    [plans(limits)],
                )
                found |= {(names, limits, way): some for way, some in zip(WAYS, chosen, strict=True)}
                advance(1)
    return _replayed(bench, found, among)


def _replayed(
    bench: Bench, found: Mapping[tuple[str, Limits, str], Sequence[Controller]], among: Mapping[tuple[str, str], int]
) -> list[Kept]:
    """What was found for each test pool's training pools, on that pool, and in the mean over a model's pools."""
    kept: list[Kept] = []
    for pool in bench.test:
        mine = {key: some for key, some in found.items() if key[0] == _names(bench.training_for(pool)) and some}
        results = iter(bench.evaluate(pool, [controller for some in mine.values() for controller in some]))
        for (names, limits, way), some in mine.items():
            kept.append(Kept(limits, way, pool.name, [next(results) for _ in some], among.get((names, way), 0)))
    for model, limits, way in product(dict.fromkeys(map(model_of, bench.test)), _grid(bench), WAYS):
        pools = [pool.name for pool in bench.test if model_of(pool) == model]
        mine_of = [one for one in kept if (one.limits, one.way) == (limits, way) and one.pool in pools]
        if len(pools) > 1 and len(mine_of) == len(pools):
            runs = zip(*(one.results for one in mine_of), strict=False)
            kept.append(replace(mine_of[0], pool=model, results=[_mean(run) for run in runs]))
    return kept


def _mean(results: Sequence[Result]) -> Result:
    """One result in place of several pools'."""
    means = {metric: mean_over_pools(results, metric) for metric in ("samples", "rounds", "agreement", "accuracy")}
    return replace(results[0], **means)  # type: ignore[arg-type]


def _chooser(bench: Bench, training: Training, controllers: Sequence[Controller]) -> Callable[[Limits], Controller]:
    """What chooses, by means on the training pools, who agrees most often within limits, or is least over them."""
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


def _trainings(bench: Bench) -> dict[str, Training]:
    """The pools that controllers are trained on, by their names."""
    return {_names(training): training for training in map(bench.training_for, bench.test)}


def _names(training: Training) -> str:
    return ", ".join(pool.name for pool in training)


def budgets_page(found: Sequence[Kept], bench: Bench) -> Page:
    """The proposition: whether budgets on average are kept out of sample, and how often the answers agree."""
    section = _plotted(found)
    text = (
        "Penalties are found, or chosen among fixed ones, on the training pools, so that there are so many samples and "
        "rounds on average. On test pools: samples in rounds, agreement with the full vote; **bold** where neither "
        f"mean is over its budget by more than {100 * SLACK:g} %, and how many of the seeds keep to it where there are "
        "several. Pools that are harder than the training pools take more than the mean, others less.\n"
    )
    for model, group in by_model(bench.test).items():
        columns = [model, *(pool.name for pool in group)] if len(group) > 1 else [group[0].name]
        cells: dict[tuple[tuple[float, float], str], dict[str, str]] = {}
        for kept in found:
            if kept.pool in columns:
                row = cells.setdefault((kept.limits, kept.way), {})
                row[kept.pool] = _kept_cell(kept)
                row["way"] = kept.way + (f" of {kept.among}" if kept.among else "")
                row["seeds"] = f"{len(kept.results)}" if "PPO" in kept.way else ""
        lines = [
            [f"{samples:g} in {rounds:g}", *(row.get(column, "–") for column in ("way", "seeds", *columns))]
            for ((samples, rounds), _), row in sorted(cells.items(), key=lambda one: (one[0][0], WAYS.index(one[0][1])))
        ]
        heads = ["mean" if name == model else name.removeprefix(f"{model}__") for name in columns]
        text += f"\n**{model}**\n\n" + markdown_table(["samples in rounds", "", "seeds", *heads], lines)
    rows = [
        {"samples_limit": kept.limits[0], "rounds_limit": kept.limits[1], "way": kept.way, "pool": kept.pool}
        | {"seeds": len(kept.results), "among": kept.among, "kept": kept.met}
        | spread_columns(kept.results, ("samples", "rounds", "agreement", "accuracy"))
        for kept in found
    ]
    return Page(text + pictures(["budgets.png"]), rows, {}, [section], {"budgets.png": [section]})


def _kept_cell(kept: Kept) -> str:
    samples, rounds, agreement = (cell(metric, kept.results) for metric in ("samples", "rounds", "agreement"))
    seeds = f" ({kept.met} of {len(kept.results)})" if len(kept.results) > 1 else ""
    mark = "**" if kept.met == len(kept.results) else ""
    return f"{mark}{samples} in {rounds}{mark}, {agreement} %{seeds}"


def _plotted(found: Sequence[Kept]) -> Section:
    """Samples over their limit against rounds over theirs: a panel a pool, a point a way and budget.

    The line is where both are at their limits: what is below and to the left of it keeps to the budget.
    """
    panels = []
    for pool in sorted(dict.fromkeys(kept.pool for kept in found), key=lambda pool: "__" in pool):  # means first
        points: dict[str, list[list[Any]]] = {way: [] for way in WAYS}
        for kept in (kept for kept in found if kept.pool == pool):
            samples, rounds = (spread_columns(kept.results, (one,))[one] or 0.0 for one in ("samples", "rounds"))
            limits = f"{kept.limits[0]:g} samples in {kept.limits[1]:g} rounds"
            points[kept.way].append([limits, samples / kept.limits[0], rounds / kept.limits[1], kept.limits[0]])
        edge = [["", 1, 0, 1], ["", 1, 1, 1], ["", 0, 1, 1]]
        series = [
            {"name": way, "colour": colour, "marker": marker, "line": False, "points": points[way]}
            for way, (colour, marker) in zip(WAYS, BUDGET_MARKS, strict=True)
            if points[way]
        ]
        limit = {"name": "the limits", "colour": BLACK, "marker": "s", "line": True, "points": edge}
        panels.append({"name": pool, "series": [limit, *series]})
    x = Axis(1, "samples, as a share of their limit", 2, zero=True)
    y = Axis(2, "rounds, as a share of theirs", 2, zero=True)
    return plot(TITLE, [x], [y], panels, sizes=3)


TITLE = "Budgets on average"
EXPERIMENT = Experiment(TITLE, budgets, budgets_page, budgets_jobs)
