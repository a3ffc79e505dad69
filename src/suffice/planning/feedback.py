"""Feedback on answers, right or wrong: labels for a calibration, and a watch over the risk that was promised."""

from dataclasses import dataclass, replace

import numpy as np
from pydantic import TypeAdapter

from suffice.planning.promises import RiskPromise
from suffice.planning.right import Calibration, learn

MOST_LABELS = 300
"""So many are learned from, the last ones: enough to prove a risk of 0.01, few enough to follow what changes."""

KEPT_LABELS = 50
"""So many of them say how often answers are right after a promise was broken: those before are of another time."""


@dataclass(frozen=True)
class Feedback:
    """What was said of the answers to requests that are alike.

    >>> feedback = Feedback()
    >>> for right in [True] * 30:
    ...     feedback = feedback.joined_by(3.0, right, sure=True, risk=0.1)
    >>> len(feedback.labels), feedback.promise.wrong, feedback.broken
    (30, 0, 0)
    """

    labels: tuple[tuple[float, int], ...] = ()
    """Of each vote its score, and whether its answer was right."""
    fresh: int = 0
    """How many came since a promise was last broken: they alone say what may be promised now."""
    promise: RiskPromise | None = None
    broken: int = 0
    """How often a promise was."""

    def joined_by(self, score: float, right: bool, sure: bool | None, risk: float | None) -> "Feedback":
        """With one more; it counts against a promised risk where the answer was sure enough."""
        labels = (*self.labels, (score, int(right)))[-MOST_LABELS:]
        grown = replace(self, labels=labels, fresh=min(self.fresh + 1, MOST_LABELS))
        if not sure or risk is None:
            return grown
        kept = self.promise and self.promise.risk == risk
        promise = replace(self.promise, won=[*self.promise.won]) if self.promise and kept else RiskPromise(risk)
        promise.observe(not right)
        if not promise.is_broken:
            return replace(grown, promise=promise)
        return Feedback(labels[-KEPT_LABELS:], 0, RiskPromise(risk), self.broken + 1)

    def applied_to(self, base: Calibration) -> Calibration:
        """The calibration that follows: of the last labels, after a broken promise of those since alone."""
        if not self.labels:
            return base
        scores, truths = (np.array(column, float) for column in zip(*self.labels, strict=True))
        if not self.broken:
            scores = np.concatenate([base.scores, scores])[-MOST_LABELS:]
            truths = np.concatenate([base.truths, truths])[-MOST_LABELS:]
        level, slope = learn(scores[:, None], truths[:, None])
        start = len(scores) - self.fresh if self.broken else 0
        return replace(base, level=level, slope=slope, scores=scores[start:], truths=truths[start:].astype(int))

    def to_bytes(self) -> bytes:
        return _JSON.dump_json(self)

    @classmethod
    def read(cls, kept: bytes | None) -> "Feedback":
        """What is kept; ValueError where it is broken."""
        return cls() if kept is None else _JSON.validate_json(kept)


_JSON = TypeAdapter(Feedback)
