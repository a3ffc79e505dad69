"""Figures 3 and 6 of the paper: where the samples go."""

from collections.abc import Mapping, Sequence
from typing import Any

import scipy

from suffice.experiments.bench import NOTHING, Bench, Experiment
from suffice.report.html import Axis, Section, apart, panel, percent, plot
from suffice.report.markdown import Page, markdown_table, pictures
from suffice.training.setting import TrainingJob

Effort = dict[str, Any]
"""One question as a row: how much its answers differ, the share that is right if gold is known, the samples drawn."""


def explain_jobs(bench: Bench) -> dict[tuple[str, str, int], TrainingJob]:
    """A controller for each test pool."""
    return {(pool.name, "rl", 0): bench.job(bench.training_for(pool)) for pool in bench.test}


def explain(bench: Bench) -> list[Effort]:
    """What the learned controller draws for each question."""
    measured = bench.measure(explain_jobs(bench), {})
    found: list[Effort] = []
    for pool in bench.test:
        for result in measured[pool.name].get("rl", []):
            for question, samples in zip(pool.questions, result.by_question["samples"].tolist(), strict=True):
                known = {"entropy": question.entropy, "accuracy": question.share_right, "samples": samples}
                found.append({"pool": pool.name, "question": question.id, **known})
    return found


def rank_correlation(points: Sequence[tuple[float, float]]) -> float | None:
    """Spearman's; None where there are too few points, or all are alike."""
    if len(points) < 3 or min(len(set(column)) for column in zip(*points, strict=True)) == 1:
        return None
    return float(scipy.stats.spearmanr(points).statistic)


def explain_page(found: Sequence[Effort], bench: Bench) -> Page:
    """Figures 3 and 6."""
    if not found:
        return Page(NOTHING, [])
    pools = {
        pool: [one for one in found if one["pool"] == pool] for pool in dict.fromkeys(one["pool"] for one in found)
    }
    lines = []
    for pool, efforts in pools.items():
        known = [(one["accuracy"], one["samples"]) for one in efforts if one["accuracy"] is not None]
        divided = [(one["entropy"], one["samples"]) for one in efforts]
        correlations = map(rank_correlation, (divided, known))
        lines.append([pool, *("–" if value is None else f"{value:+.2f}" for value in correlations)])
    gold = all(any(one["accuracy"] is not None for one in efforts) for efforts in pools.values())
    section = _plotted(pools)
    drawn = apart(section)[: None if gold else 1]
    table = markdown_table(["pool", "with entropy", "with accuracy"], lines)
    text = f"Rank correlation (Spearman) of the samples drawn for a question:\n\n{table}\n{pictures(['explain.png'])}"
    return Page(text, list(found), {}, [section], {"explain.png": drawn})


def _plotted(pools: Mapping[str, Sequence[Effort]]) -> Section:
    """A point a question: the samples drawn against how divided its answers are, and how many are right."""
    x = [Axis(1, "how divided the answers are (entropy, nats)", 2, zero=True), percent(2, "responses that are right")]
    shown = []
    for pool, efforts in pools.items():
        rights = [None if one["accuracy"] is None else 100 * one["accuracy"] for one in efforts]
        points = [
            [one["question"], one["entropy"], right, one["samples"]] for one, right in zip(efforts, rights, strict=True)
        ]
        shown.append(panel(pool, {"rl": points}))
    return plot(TITLE, x, [Axis(3, "samples", zero=True)], shown)


TITLE = "Where the samples go"
EXPERIMENT = Experiment(TITLE, explain, explain_page, explain_jobs)
