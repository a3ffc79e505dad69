"""Learning weights: a logistic model of whether a response is right, by its signals, within its question."""

from collections.abc import Sequence

import numpy as np

from suffice.elections.election import LENGTH, standardised
from suffice.elections.weights import signal_of
from suffice.pools import Pool, Question
from suffice.tally import FloatArray, IntArray, Tally

RIDGE = 1.0
"""What speaks against strengths far from 0, as much as one response: it keeps them finite in any case."""

ROUNDS = 50
NEAR = 1e-9


def common_signals(pools: Sequence[Pool]) -> list[str]:
    """The signals that every pool has, length among them where every pool tells tokens."""

    def had(pool: Pool) -> set[str]:
        named = {name for question in pool.questions for name in question.signals}
        return named | ({LENGTH} if any(question.tokens for question in pool.questions) else set())

    shared = set.intersection(*map(had, pools))
    return sorted(shared, key=lambda name: (name == LENGTH, name))


def majority_of(question: Question) -> str | None:
    """What all of a question's responses elect."""
    tally = Tally(len(question.answers))
    tally.add_round(question.answers)
    return tally.leader


def fit_strengths(questions: Sequence[Question], targets: Sequence[str | None], names: Sequence[str]) -> FloatArray:
    """The strength of each signal under which the responses that are right are likeliest to be those.

    Each question has a level of its own, so that only differences among its responses count; those without an answer
    are left out, and so are questions whose answers are all right or all wrong: from them there is nothing to learn.
    NaN where that is true of all.
    """
    parts = []
    for question, target in zip(questions, targets, strict=True):
        answered = question.codes >= 0
        right = question.codes[answered] == question.code(target)
        if target is not None and 0 < right.sum() < right.size:
            columns = [signal_of(name, question.signal_values, question.lengths)[answered] for name in names]
            parts.append((np.column_stack([standardised(column) for column in columns]), right))
    if not parts:
        return np.full(len(names), np.nan)
    scores, right = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return _fixed_effects(scores, right.astype(float), np.repeat(np.arange(len(parts)), [len(y) for _, y in parts]))


def _fixed_effects(scores: FloatArray, right: FloatArray, groups: IntArray) -> FloatArray:
    """The slopes of a logistic regression with a level for each group, by Newton's method.

    The levels are many and touch only their own rows, so that they are solved for first in every step.
    """
    sizes = np.bincount(groups)
    shares = np.bincount(groups, right) / sizes
    levels, slopes = np.log(shares / (1 - shares)), np.zeros(scores.shape[1])
    for _ in range(ROUNDS):
        likely = 1 / (1 + np.exp(-np.clip(scores @ slopes + levels[groups], -30, 30)))
        spread = likely * (1 - likely)
        surprise = right - likely
        by_level = np.bincount(groups, spread)
        crossed = np.column_stack([np.bincount(groups, spread * column) for column in scores.T])
        level_gaps = np.bincount(groups, surprise)
        curvature = scores.T @ (spread[:, None] * scores) + RIDGE * np.eye(len(slopes))
        curvature -= crossed.T @ (crossed / by_level[:, None])
        slope_gaps = scores.T @ surprise - RIDGE * slopes - crossed.T @ (level_gaps / by_level)
        step = np.linalg.solve(curvature, slope_gaps)
        slopes = slopes + step
        levels = levels + (level_gaps - crossed @ step) / by_level
        if np.abs(step).max() < NEAR:
            break
    return slopes
