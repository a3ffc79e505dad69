"""Tables 1 and 5 of the paper: rules and the learned controller side by side, in samples and rounds and in tokens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

import numpy as np

from suffice.experiments.bench import Bench, Experiment, benchmark_of, by_model
from suffice.experiments.scaling import by_axes, curves_plot, point
from suffice.planning import EXACT_BUDGET, Plan
from suffice.pools import Pool
from suffice.replay import Difference, Result, difference, mean_over_pools
from suffice.report.markdown import (
    Page,
    cell,
    gap_columns,
    gap_text,
    markdown_table,
    pictures,
    spread_columns,
    text_of,
)
from suffice.training.setting import TARGETS, TrainingJob

LEARNED = "RL-guided"
LEARNED_METHODS = (LEARNED, *TARGETS)
"""Those that are trained, in these tables and in those of the ablation."""
SAMPLES = {"accuracy": "acc. %", "rounds": "rounds", "samples": "samples"}
TOKENS = {"accuracy": "acc. %", "sequential_tokens": "seq. tokens", "total_tokens": "total tokens"}
METHODS_OF_ROWS = {"ASC": "asc", "ESC": "esc", LEARNED: "rl"}
COMPARED = ("accuracy", "agreement", "samples", "rounds", "reward")

Measured = Mapping[str, Mapping[str, list[Result]]]
"""By test pool and method: one result, or one for each seed."""

Jobs = Mapping[tuple[str, str, int], TrainingJob]
"""By test pool, method and seed."""


@dataclass(frozen=True)
class Methods:
    """What each method measures on each pool, and the one that changes are against.

    `pairs` are those whose difference is of interest: the first of each against the second. `ceilings` has, by pool,
    the exact planner with the learned controllers' actions and penalties.
    """

    measured: Measured
    base: str
    pairs: Sequence[tuple[str, str]]
    ceilings: Mapping[str, Result] = field(default_factory=dict)

    @property
    def rewards(self) -> tuple[float, float] | None:
        """The mean reward of the learned controllers, and of the planner on the same pools, where there are both."""
        pools = [pool for pool in self.ceilings if LEARNED in self.measured[pool]]
        if not pools:
            return None
        own = [mean_over_pools(self.measured[pool][LEARNED], "reward") or 0.0 for pool in pools]
        return fmean(own), fmean(self.ceilings[pool].reward for pool in pools)

    def differences(self, pools: Sequence[str]) -> dict[tuple[str, str], dict[str, Difference | None]]:
        """Of each pair, over these pools, with intervals over questions; seeds are averaged question by question."""
        found = {}
        for pair in self.pairs:
            if all(method in self.measured[pool] for method in pair for pool in pools):
                ours, theirs = ([mean_result(self.measured[pool][method]) for pool in pools] for method in pair)
                found[pair] = {metric: difference(ours, theirs, metric) for metric in COMPARED}
        return found


def mean_result(results: Sequence[Result]) -> Result:
    """One result in place of several seeds', of which each question has the mean."""
    metrics = results[0].by_question
    means = {metric: np.mean([result.by_question[metric] for result in results], axis=0) for metric in metrics}
    return replace(results[0], by_question=means)


def main_jobs(bench: Bench) -> Jobs:
    """The controllers of the main tables."""
    return bench.jobs({LEARNED: {}})


def main(bench: Bench) -> Methods:
    """Tables 1 and 5: rules and the learned controller, in samples and rounds and in tokens."""
    rules = {f"SC@{bench.budget}": "sc", "ASC": "asc", "ESC": "esc"}
    measured = bench.measure(main_jobs(bench), rules)
    ceilings = {}
    if bench.budget <= EXACT_BUDGET:
        penalties = bench.setting.penalties
        planner = Plan(penalties.draw, penalties.round, bench.setting.actions)
        ceilings = {pool.name: bench.evaluate(pool, [planner])[0] for pool in bench.test}
    return Methods(measured, next(iter(rules)), [(LEARNED, rule) for rule in rules], ceilings)


def main_page(found: Methods, bench: Bench) -> Page:
    """Tables 1 and 5."""
    tables = [
        f"{table}\n"
        for columns in (SAMPLES, TOKENS)
        for table in paper_tables(bench.test, found.measured, columns, found.base)
    ]
    panels = {
        pool: {
            METHODS_OF_ROWS.get(name, "sc"): [point("", [[result] for result in seeds])]
            for name, seeds in methods.items()
        }
        for pool, methods in found.measured.items()
    }
    for pool, planned in found.ceilings.items():
        panels[pool]["plan"] = [point("", [[planned]])]
    section = curves_plot(TITLE, panels)
    drawn = by_axes(section, ("rounds", "samples"), "agreement", list(panels))
    regret = ""
    if rewards := found.rewards:
        own, best = rewards
        regret = (
            f"Mean reward: {LEARNED} {own:.4f}, the exact planner with the same actions and penalties {best:.4f}: "
            f"a regret of {best - own:.4f}.\n\n"
        )
    differences, rows = differences_table(found, bench.test)
    text = "\n".join(tables) + f"{regret}{differences}{pictures(['main.png'])}"
    return Page(text, long_rows(found.measured), {"differences": rows}, [section], {"main.png": drawn})


def differences_table(found: Methods, pools: Sequence[Pool]) -> tuple[str, list[dict[str, Any]]]:
    """The differences between methods over each model's pools, as Markdown and as rows."""
    lines, rows = [], []
    for model, group in by_model(pools).items():
        for (ours, theirs), gaps in found.differences([pool.name for pool in group]).items():
            lines.append([model, f"{ours} − {theirs}", *(gap_text(gaps[metric], metric) for metric in COMPARED)])
            rows.append({"model": model, "method": ours, "against": theirs, **gap_columns(gaps)})
    if not lines:
        return "", []
    table = markdown_table(["model", "difference", *COMPARED], lines)
    return f"Differences, with 95 % intervals over questions (paired bootstrap):\n\n{table}\n", rows


def paper_tables(pools: Sequence[Pool], measured: Measured, columns: dict[str, str], base: str) -> list[str]:
    """A table a model: a row a method, a group of columns a benchmark, and the averages with changes against a base."""
    tables = []
    for model, group in by_model(pools).items():
        names = [pool.name for pool in group]
        heads = [f"{benchmark_of(pool)} {label}" for pool in group for label in columns.values()]
        heads += [f"avg. {label}" for label in columns.values()]
        rows = []
        for method in dict.fromkeys(method for name in names for method in measured[name]):
            if not all(method in measured[name] for name in names):
                continue  # not trained yet for all of them
            counts = list(dict.fromkeys(str(len(measured[name][method])) for name in names))
            seeds = "" if counts == ["1"] and method not in LEARNED_METHODS else ", ".join(counts)
            cells = [cell(metric, measured[name][method]) for name in names for metric in columns]
            for metric in columns:
                value = _average(measured, names, method, metric)
                against = _average(measured, names, base, metric)
                changes = metric != "accuracy" and method != base and value is not None and against
                change = f" ({100 * ((value or 0) / (against or 1) - 1):+.0f} %)" if changes else ""
                cells.append(text_of(value, metric) + change)
            rows.append([method, seeds, *cells])
        tables.append(f"**{model}**\n\n" + markdown_table(["", "seeds", *heads], rows))
    return tables


def _average(measured: Measured, names: Sequence[str], method: str, metric: str) -> float | None:
    means = [mean_over_pools(measured[name][method], metric) for name in names]
    return None if None in means else fmean(mean or 0.0 for mean in means)


def long_rows(measured: Measured) -> list[dict[str, Any]]:
    """A row for each pool and method: means and deviations over the seeds."""
    return [
        {"pool": pool, "method": method, "seeds": len(results), **spread_columns(results, results[0].by_question)}
        for pool, methods in measured.items()
        for method, results in methods.items()
    ]


TITLE = "SC, ASC, ESC and the learned controller"
EXPERIMENT = Experiment(TITLE, main, main_page, main_jobs)
