"""Figures 3 and 6 of the paper: where the samples go."""

from collections.abc import Sequence
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


@dataclass(frozen=True)
class Explained:
    """The questions of one pool."""

    pool: str
    efforts: list[Effort]

    @property
    def by_entropy(self) -> list[tuple[float, float]]:
        """The entropy and the samples of each question."""
        return [(effort.entropy, effort.samples) for effort in self.efforts]

    @property
    def by_accuracy(self) -> list[tuple[float, float]]:
        """The accuracy and the samples of each question with a gold answer."""
        return [(effort.accuracy, effort.samples) for effort in self.efforts if effort.accuracy is not None]


def explain_jobs(bench: Bench) -> dict[str, TrainingJob]:
    """A controller for each test pool."""
    return {pool.name: bench.job(bench.training_for(pool)) for pool in bench.test}


def explain(bench: Bench) -> list[Explained]:
    """What the learned controller draws for each question, pool by pool."""
    learned = bench.learned(explain_jobs(bench))
    explained = []
    for pool in (pool for pool in bench.test if pool.name in learned):
        samples = bench.evaluate(pool, [learned[pool.name]])[0].by_question["samples"].tolist()
        efforts = [
            Effort(question.id, question.entropy, question.share_right, drawn)
            for question, drawn in zip(pool.questions, samples, strict=True)
        ]
        explained.append(Explained(pool.name, efforts))
    return explained


def rank_correlation(points: Sequence[tuple[float, float]]) -> float | None:
    """Spearman's; None where there are too few points, or all are alike."""
    if len(points) < 3 or min(len(set(column)) for column in zip(*points, strict=True)) == 1:
        return None
    return float(scipy.stats.spearmanr(points).statistic)


def explain_page(found: list[Explained], bench: Bench) -> Page:
    """Figures 3 and 6."""
    from suffice.report.figures import draw_plots

    if not found:
        return Page(NOTHING, [])
    lines = []
    for pool in found:
        correlations = [rank_correlation(pool.by_entropy), rank_correlation(pool.by_accuracy)]
        lines.append([pool.pool, *("–" if value is None else f"{value:+.2f}" for value in correlations)])
    every = all(pool.by_accuracy for pool in found)  # else some pools have no gold answers
    draw_plots(apart(_explained(found))[: None if every else 1], bench.out / "explain.png")
    table = markdown_table(["pool", "with entropy", "with accuracy"], lines)
    rows = [{"pool": pool.pool, **asdict(effort)} for pool in found for effort in pool.efforts]
    text = f"Rank correlation (Spearman) of the samples drawn for a question:\n\n{table}\n{pictures(['explain.png'])}"
    return Page(text, rows)


def _explained(found: Sequence[Explained]) -> Section:
    """A point a question: the samples drawn against how divided its answers are, and how many are right."""
    x = [Axis(1, "how divided the answers are (entropy, nats)", 2, zero=True), percent(2, "responses that are right")]
    panels = {
        pool.pool: [
            [one.question, one.entropy, None if one.accuracy is None else 100 * one.accuracy, one.samples]
            for one in pool.efforts
        ]
        for pool in found
    }
    shown = [panel(pool, {"rl": points}) for pool, points in panels.items()]
    return plot(TITLE, x, [Axis(3, "samples", zero=True)], shown)


TITLE = "Where the samples go"
EXPERIMENT = Experiment(TITLE, explain, explain_page, explain_jobs)
