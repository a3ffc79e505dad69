"""Figures 3 and 6 of the paper: where the samples go."""

from collections.abc import Sequence
from dataclasses import dataclass

import scipy

from suffice.experiments.bench import Bench
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
