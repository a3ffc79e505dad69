"""Figures 3 and 6 of the paper: where the samples go."""

from collections.abc import Sequence

import scipy

from suffice.experiments.bench import Bench, Experiment, Jobs
from suffice.report.html import Axis, Point, apart, panel, percent, plot
from suffice.report.markdown import Page, Row, markdown_table, pictures


def explain_jobs(bench: Bench) -> Jobs:
    return bench.jobs({"rl": {}}, seeds=1)


def explain(bench: Bench) -> Page:
    rows: list[Row] = []
    lines, panels = [], []
    for pool, measured in zip(bench.test, bench.measure(explain_jobs(bench), {}).values(), strict=True):
        (result,) = measured["rl"]
        own: list[Row] = [
            {
                "pool": pool.name,
                "question": one.id,
                "entropy": one.entropy,
                "accuracy": one.share_right,
                "samples": drawn,
            }
            for one, drawn in zip(pool.questions, result.by_question["samples"].tolist(), strict=True)
        ]
        known = [(row["accuracy"], row["samples"]) for row in own if row["accuracy"] is not None]
        correlations = map(rank_correlation, ([(row["entropy"], row["samples"]) for row in own], known))
        lines.append([pool.name, *("–" if value is None else f"{value:+.2f}" for value in correlations)])
        points: list[Point] = [
            [one.id, one.entropy, None if one.share_right is None else 100 * one.share_right, row["samples"]]
            for one, row in zip(pool.questions, own, strict=True)
        ]
        panels.append(panel(pool.name, {"rl": points}))
        rows += own
    x = [Axis("how divided the answers are (entropy, nats)", 2, zero=True), percent("responses that are right")]
    section = plot("", x, [Axis("samples", zero=True)], panels)
    gold = all(any(question.share_right is not None for question in pool.questions) for pool in bench.test)
    drawn = apart(section)[: None if gold else 1]
    table = markdown_table(["pool", "with entropy", "with accuracy"], lines)
    text = f"Rank correlation (Spearman) of the samples drawn for a question:\n\n{table}\n{pictures(['explain.png'])}"
    return Page(text, rows, (), [section], {"explain.png": drawn})


def rank_correlation(points: Sequence[tuple[float, float]]) -> float | None:
    """Spearman's; None for too few points, or where all are alike."""
    if len(points) < 3 or min(len(set(column)) for column in zip(*points, strict=True)) == 1:
        return None
    return float(scipy.stats.spearmanr(points).statistic)


EXPERIMENT = Experiment("Where the samples go", explain, explain_jobs)
