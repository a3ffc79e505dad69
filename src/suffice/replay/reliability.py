"""Reliability: does an answer with a confidence of 80 % stay the answer in 80 % of the cases?

The certainty is checked against the majority of all of a question's responses, which is as near as a pool gets.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from suffice.planning import UNIVERSAL, Prior, certainties
from suffice.pools import AnyPool, Pool, draw_episodes, get_pools
from suffice.tally import FloatArray

DECILES = 10

REPEATS = 20
"""How often each question is replayed to check the certainty."""


@dataclass(frozen=True)
class Reliability:
    """Outcomes by decile of confidence; the columns are their number, their summed confidence, how many agree."""

    sums: FloatArray

    @property
    def calibration_error(self) -> float:
        """The expected calibration error in points: |confidence − agreement| of a decile, averaged over outcomes."""
        return float(100 * np.abs(self.sums[:, 1] - self.sums[:, 2]).sum() / self.sums[:, 0].sum())

    @property
    def deciles(self) -> list[dict[str, float]]:
        """The deciles that have outcomes: how many, their share of all, mean confidence and agreement, in percent."""
        total = self.sums[:, 0].sum()
        return [
            {
                "outcomes": count,
                "share": 100 * count / total,
                "confidence": 100 * sure / count,
                "agreement": 100 * agree / count,
            }
            for count, sure, agree in self.sums.tolist()
            if count
        ]


def decile_sums(confidence: FloatArray, agrees: np.ndarray) -> FloatArray:
    """What `Reliability` holds, for some outcomes."""
    return question_sums(confidence, agrees, len(confidence)).sum(axis=0)


def question_sums(confidence: FloatArray, agrees: np.ndarray, repeats: int) -> FloatArray:
    """The same for the outcomes of each question: so its sums don't depend on how questions were batched."""
    decile = np.minimum((confidence * DECILES).astype(int), DECILES - 1)
    questions = max(1, len(decile) // max(repeats, 1))
    place = np.repeat(np.arange(questions) * DECILES, repeats) + decile
    columns = (np.ones(len(decile)), confidence, agrees)
    sums = [np.bincount(place, column, minlength=questions * DECILES) for column in columns]
    return np.stack(sums, axis=-1, dtype=float).reshape(questions, DECILES, 3)


def pooled(parts: Iterable[Reliability | None]) -> Reliability | None:
    """Several taken together; None where one is not known."""
    known = list(parts)
    return None if None in known else Reliability(np.sum([part.sums for part in known if part], axis=0))


def certainty_reliability(pool: AnyPool, draws: int, prior: Prior = UNIVERSAL) -> Reliability:
    """Certainty after so many draws, by decile, and how often the leader is the majority of all responses."""
    sums = np.zeros((DECILES, 3))
    for episodes in draw_episodes(get_pools(pool)[0], draws, REPEATS, seed=0):
        rows = np.arange(len(episodes.answers))
        sure = certainties(episodes.standings.at(rows, np.full(len(rows), draws)), prior)
        majorities = episodes.codes(question.majority for question in episodes.questions)
        known = ~np.isnan(sure)
        sums += decile_sums(sure[known], (episodes.standings.reference == majorities)[known])
    return Reliability(sums)


CHECKPOINTS = (4, 8, 16, 32)
"""Numbers of draws after which the certainty is checked."""


def certainty_reliabilities(pools: Sequence[Pool]) -> dict[str, Reliability]:
    """All pools together, by the number of draws; those with twice as many responses at least know a majority."""
    found = {}
    for draws in CHECKPOINTS:
        known = [pool for pool in pools if min(len(question.answers) for question in pool.questions) >= 2 * draws]
        together = pooled(certainty_reliability(pool, draws) for pool in known)
        if known and together:
            found[f"after {draws} draws"] = together
    return found
