"""Tables 1 and 5 of the paper: rules and the learned controller, in samples, rounds and tokens."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

import numpy as np

from suffice.experiments.bench import Bench, Experiment, Jobs, Measured, benchmark_of, by_model
from suffice.experiments.scaling import by_axes, curves_plot
from suffice.planning import EXACT_BUDGET, Plan
from suffice.pools import Pool
from suffice.replay import Difference, Result, difference
from suffice.replay.evaluate import spread
from suffice.report.markdown import Page, Row, cell, gap_columns, gap_text, markdown_table, pictures, spreads, text_of
from suffice.training.setting import TARGETS

LEARNED = "RL-guided"
LEARNED_METHODS = (LEARNED, *TARGETS)  # here and in the ablation
SAMPLES = {"accuracy": "acc. %", "rounds": "rounds", "samples": "samples"}
TOKENS = {"accuracy": "acc. %", "sequential_tokens": "seq. tokens", "total_tokens": "total tokens"}
METHODS_OF_ROWS = {"ASC": "asc", "ESC": "esc", LEARNED: "rl"}
Gaps = dict[str, Difference | None]
COMPARED = ("accuracy", "agreement", "samples", "rounds", "reward")


def main_jobs(bench: Bench) -> Jobs:
    return bench.jobs({LEARNED: {}})


def main(bench: Bench) -> Page:
    """Tables 1 and 5, and the exact planner with the same actions and penalties."""
    rules = {f"SC@{bench.budget}": "sc", "ASC": "asc", "ESC": "esc"}
    base = next(iter(rules))
    measured = bench.measure(main_jobs(bench), rules)
    rows = method_rows(measured)
    tables = [*paper_tables(bench.test, rows, SAMPLES, base), *paper_tables(bench.test, rows, TOKENS, base)]
    points = [{**row, "method": METHODS_OF_ROWS.get(row["method"], "sc"), "parameter": ""} for row in rows]
    reward = ""
    if bench.budget <= EXACT_BUDGET:
        own = bench.setting
        planner = Plan(own.penalties.draw, own.penalties.round, own.actions)
        planned = method_rows({pool.name: {"plan": bench.evaluate(pool, [planner])} for pool in bench.test})
        points += [{**row, "parameter": ""} for row in planned]
        mean = fmean(row["reward"] for row in rows if row["method"] == LEARNED)
        best = fmean(row["reward"] for row in planned)
        reward = (
            f"Mean reward: {LEARNED} {mean:.4f}, the exact planner with the same actions and penalties {best:.4f}: "
            f"a regret of {best - mean:.4f}.\n\n"
        )
    section = curves_plot(points)
    drawn = by_axes(section, ("rounds", "samples"), "agreement", [pool.name for pool in bench.test])
    differences, gaps = gaps_table(measured, [(LEARNED, rule) for rule in rules], bench.test)
    text = "\n\n".join(tables) + f"\n{reward}{differences}{pictures(['main.png'])}"
    return Page(text, rows, gaps, [section], {"main.png": drawn})


def method_rows(measured: Measured) -> list[Row]:
    return [
        {"pool": pool, "method": method, **spreads([[one] for one in results], results[0].by_question)}
        for pool, methods in measured.items()
        for method, results in methods.items()
    ]


def paper_tables(pools: Sequence[Pool], rows: Sequence[Row], columns: Mapping[str, str], base: str) -> list[str]:
    """A table a model, a row a method: each benchmark, and averages with changes against a base."""
    tables = []
    for model, group in by_model(pools).items():
        heads = [f"{benchmark_of(pool)} {label}" for pool in group for label in columns.values()]
        heads += [f"avg. {label}" for label in columns.values()]
        names = [pool.name for pool in group]
        by_method: dict[str, list[Row]] = {}
        for row in (row for row in rows if row["pool"] in names):
            by_method.setdefault(row["method"], []).append(row)
        lines = []
        for method, own in by_method.items():
            seeds = str(own[0]["seeds"]) if method in LEARNED_METHODS else ""
            cells = [cell(row, metric) for row in own for metric in columns]
            for metric in columns:
                value, against = (spread([row[metric] for row in some])[0] for some in (own, by_method[base]))
                text = text_of(value, metric)
                if metric != "accuracy" and method != base and value is not None and against:
                    text += f" ({100 * (value / against - 1):+.0f} %)"
                cells.append(text)
            lines.append([method, seeds, *cells])
        tables.append(f"**{model}**\n\n" + markdown_table(["", "seeds", *heads], lines))
    return tables


def gaps_table(measured: Measured, pairs: Sequence[tuple[str, str]], pools: Sequence[Pool]) -> tuple[str, list[Row]]:
    """Differences over each model's pools, as Markdown and as rows."""
    lines, rows = [], []
    for model, group in by_model(pools).items():
        for ours, theirs in pairs:
            gaps = seeds_gaps(measured, group, ours, theirs)
            lines.append([model, f"{ours} − {theirs}", *(gap_text(gap, metric) for metric, gap in gaps.items())])
            rows.append({"model": model, "method": ours, "against": theirs, **gap_columns(gaps)})
    table = markdown_table(["model", "difference", *COMPARED], lines)
    return f"Differences, with 95 % intervals over questions (paired bootstrap):\n\n{table}\n", rows


def seeds_gaps(measured: Measured, pools: Sequence[Pool], ours: object, theirs: object) -> Gaps:
    """How two methods differ; seeds are averaged question by question."""
    means, base = ([mean_result(measured[pool.name][method]) for pool in pools] for method in (ours, theirs))
    return {metric: difference(means, base, metric) for metric in COMPARED}


def mean_result(results: Sequence[Result]) -> Result:
    """One result for several seeds, with each question's mean."""
    metrics = results[0].by_question
    means = {metric: np.mean([result.by_question[metric] for result in results], axis=0) for metric in metrics}
    return replace(results[0], by_question=means)


EXPERIMENT = Experiment("SC, ASC, ESC and the learned controller", main, main_jobs)
