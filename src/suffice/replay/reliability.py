"""Reliability: does an answer with a confidence of 80 % stay the answer in 80 % of the cases?"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from suffice.tally import FloatArray

DECILES = 10


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
        """The deciles that have outcomes: their share of all, mean confidence and agreement, in percent."""
        total = self.sums[:, 0].sum()
        return [
            {"share": 100 * count / total, "confidence": 100 * sure / count, "agreement": 100 * agree / count}
            for count, sure, agree in self.sums.tolist()
            if count
        ]


def decile_sums(confidence: FloatArray, agrees: np.ndarray) -> FloatArray:
    """What `Reliability` holds, for some outcomes."""
    sums: FloatArray = question_sums(confidence, agrees, len(confidence)).sum(axis=0)
    return sums


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
