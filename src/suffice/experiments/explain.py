"""Figures 3 and 6 of the paper: where the samples go."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import scipy

from suffice.experiments.bench import NOTHING, Bench, Experiment
from suffice.report.html import Axis, Section, apart, panel, percent, plot
from suffice.report.markdown import Page, markdown_table, pictures
from suffice.training.setting import TrainingJob


@dataclass(frozen=True)
class Effort:
    """One question: how much its answers differ, the share that is right if gold is known, the samples drawn."""

    question: str
    entropy: float
    accuracy: float | None
    samples: float


def explain_jobs(bench: Bench) -> dict[str, TrainingJob]:
    """A controller for each test pool."""
    return {pool.name: bench.job(bench.training_for(pool)) for pool in bench.test}


def explain(bench: Bench) -> dict[str, list[Effort]]:
    """What the learned controller draws for each question, by pool."""
    learned = bench.learned(explain_jobs(bench))
    found = {}
    for pool in (pool for pool in bench.test if pool.name in learned):
        samples = bench.evaluate(pool, [learned[pool.name]])[0].by_question["samples"].tolist()
        found[pool.name] = [
            Effort(question.id, question.entropy, question.share_right, drawn)
            for question, drawn in zip(pool.questions, samples, strict=True)
        ]
    return found


def rank_correlation(points: Sequence[tuple[float, float]]) -> float | None:
    """Spearman's; None where there are too few points, or all are alike."""
    if len(points) < 3 or min(len(set(column)) for column in zip(*points, strict=True)) == 1:
        return None
    return float(scipy.stats.spearmanr(points).statistic)


def explain_page(found: Mapping[str, Sequence[Effort]], bench: Bench) -> Page:
    """Figures 3 and 6."""
    if not found:
        return Page(NOTHING, [])
    lines = []
    for pool, efforts in found.items():
        known = [(one.accuracy, one.samples) for one in efforts if one.accuracy is not None]
        correlations = [rank_correlation([(one.entropy, one.samples) for one in efforts]), rank_correlation(known)]
        lines.append([pool, *("–" if value is None else f"{value:+.2f}" for value in correlations)])
    gold = all(any(one.accuracy is not None for one in efforts) for efforts in found.values())
    section = _plotted(found)
    drawn = apart(section)[: None if gold else 1]
    table = markdown_table(["pool", "with entropy", "with accuracy"], lines)
    rows = [{"pool": pool, **asdict(effort)} for pool, efforts in found.items() for effort in efforts]
    text = f"Rank correlation (Spearman) of the samples drawn for a question:\n\n{table}\n{pictures(['explain.png'])}"
    return Page(text, rows, {}, [section], {"explain.png": drawn})


def _plotted(found: Mapping[str, Sequence[Effort]]) -> Section:
    """A point a question: the samples drawn against how divided its answers are, and how many are right."""
    x = [Axis(1, "how divided the answers are (entropy, nats)", 2, zero=True), percent(2, "responses that are right")]
    shown = []
    for pool, efforts in found.items():
        rights = [None if one.accuracy is None else 100 * one.accuracy for one in efforts]
        points = [[one.question, one.entropy, right, one.samples] for one, right in zip(efforts, rights, strict=True)]
        shown.append(panel(pool, {"rl": points}))
    return plot(TITLE, x, [Axis(3, "samples", zero=True)], shown)


TITLE = "Where the samples go"
EXPERIMENT = Experiment(TITLE, explain, explain_page, explain_jobs)
