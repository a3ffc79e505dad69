"""Learn the numbers of planning/right.py: how votes rank by the chance to be right, from the bundled pools alone.

    python scripts/learn_right.py

Each pool has a regression of its own, drawn to what they have in common, which is learned along (empirical Bayes).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from suffice import bundled_pools
from suffice.planning.right import SIGNALS, SignalScale
from suffice.replay.calibrating import REPEATS, LabelledVotes, calibration_of, judge, labelled_votes
from suffice.tally import FloatArray, IntArray

FEWEST_QUESTIONS, LABELS, SPLITS = 150, 100, 20
CONTROLLERS = ("plan", "asc", "sc:draws=8", "sc:draws=32")
ROUNDS, STEPS = 60, 30
NARROWEST = 0.01
"""The least variance between pools: from nine of them none is known to be smaller."""


class Lesson(NamedTuple):
    """Votes on one pool: what they are like, and which are right."""

    columns: FloatArray
    truths: FloatArray


class Common(NamedTuple):
    """What regressions have in common: the mean of each coefficient, and its variance."""

    means: FloatArray
    variances: FloatArray


def main() -> None:
    votes = {pool: [labelled_votes(pool, controller) for controller in CONTROLLERS] for pool in bundled_pools()}
    found = numbers([one for own in votes.values() for one in own])
    print(", ".join(f"{name} = {number:.2f}" for name, number in found.items()))
    level, slope = spreads([one for own in votes.values() for one in own])
    print(f"from pool to pool the level varies by {level:.2f}, and the slope by {slope:.2f}")
    print(f"\nOff by, with {LABELS} labels, in {SPLITS} splits; and where nothing was learned from the model:")
    for pool, (planned, *_) in votes.items():
        if len(planned.draws) >= FEWEST_QUESTIONS:
            model = pool.split("__")[0]
            others = [one for name, own in votes.items() if name.split("__")[0] != model for one in own]
            print(f"{pool} {error(planned, found):.3f} {error(planned, numbers(others)):.3f}")


def numbers(votes: Sequence[LabelledVotes]) -> dict[str, float]:
    """What planning/right.py calls by these names."""
    score = learn([lesson_of(one) for one in votes])
    level, share, draws, none = score.means
    lessons = [[with_signal(one, name, score.means) for one in votes if name in one.signals] for name in SIGNALS]
    signal = np.mean([learn(known).means[2] for known in lessons if known])
    return {"SHARE": share, "DRAWS": draws, "NONE": none, "LEVEL": level, "SIGNAL": signal}


def spreads(votes: Sequence[LabelledVotes]) -> tuple[float, float]:
    """How far level and slope of pools are apart."""
    score = learn([lesson_of(one) for one in votes])
    slopes = learn([Lesson(_with_one(lesson_of(one).columns @ score.means), one.truths.ravel()) for one in votes])
    return float(np.sqrt(score.variances[0])), float(np.sqrt(slopes.variances[1]))


def error(votes: LabelledVotes, found: dict[str, Any]) -> float:
    """The expected calibration error on the questions that were not learned from."""
    errors = []
    with patch.multiple("suffice.planning.right", **found):
        for seed in range(SPLITS):
            order = np.random.default_rng(seed).permutation(len(votes.draws))
            learned, others = some(votes, order[:LABELS]), some(votes, order[LABELS:])
            errors.append(judge(calibration_of(learned), others).calibration_error)
    return float(np.mean(errors))


def some(votes: LabelledVotes, rows: IntArray) -> LabelledVotes:
    """The votes on some of the questions."""
    own = {name: getattr(votes, name)[rows] for name in ("leader", "draws", "none", "truths", "certainties")}
    return replace(votes, **own, signals={name: one[rows] for name, one in votes.signals.items()})


def lesson_of(votes: LabelledVotes) -> Lesson:
    """What `score` makes of votes: one, the odds of the share, the draws, and those without an answer."""
    odds = np.log((votes.leader + 0.5) / (votes.draws - votes.leader + 0.5))
    columns = np.stack([np.ones(odds.shape), odds, np.log(votes.draws / 8), votes.none / votes.draws], axis=-1)
    return Lesson(columns.reshape(-1, columns.shape[-1]), votes.truths.ravel())


def with_signal(votes: LabelledVotes, name: str, weights: FloatArray) -> Lesson:
    """A score, and a signal beside it."""
    known = votes.signals[name]
    standard = SignalScale(name, float(np.nanmean(known)), float(np.nanstd(known))).standard(known)
    columns = _with_one(lesson_of(votes).columns @ weights)
    return Lesson(np.column_stack([columns, standard.ravel()]), votes.truths.ravel())


def _with_one(scores: FloatArray) -> FloatArray:
    return np.column_stack([np.ones(len(scores)), scores])


def learn(lessons: Sequence[Lesson]) -> Common:
    """What the regressions of all lessons have in common."""
    width = lessons[0].columns.shape[1]
    common = Common(np.zeros(width), np.ones(width))
    for _ in range(ROUNDS):
        fits = [fit(lesson, common) for lesson in lessons]
        means = np.mean([coefficients for coefficients, _ in fits], axis=0)
        spread = [(coefficients - means) ** 2 + unsure for coefficients, unsure in fits]
        common = Common(means, np.maximum(np.mean(spread, axis=0), NARROWEST))
    return common


def fit(lesson: Lesson, common: Common) -> tuple[FloatArray, FloatArray]:
    """A logistic regression by Newton's method, and the variance of each coefficient."""
    coefficients, curvature = common.means, np.eye(len(common.means))
    for _ in range(STEPS):
        likely = 1 / (1 + np.exp(-lesson.columns @ coefficients))
        gap = lesson.columns.T @ (lesson.truths - likely) / REPEATS
        gap -= (coefficients - common.means) / common.variances
        weighed = lesson.columns * (likely * (1 - likely))[:, None] / REPEATS
        curvature = lesson.columns.T @ weighed + np.diag(1 / common.variances)
        coefficients = coefficients + np.linalg.solve(curvature, gap)
    return coefficients, np.diag(np.linalg.inv(curvature))


if __name__ == "__main__":
    main()
