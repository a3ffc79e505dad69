"""Learned weights of several signals: their election, their file, and their fit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from suffice.controllers.files import FORMAT, load_tensors, write_tensors
from suffice.elections.election import LENGTH, Election, exponential, registry, signal_of, signals_in, standardised
from suffice.errors import OptionError
from suffice.pools import Pool, Question
from suffice.tally import FloatArray, IntArray

KIND = "weights"
RIDGE = 1.0  # weighs as much as one response, and keeps strengths finite
ROUNDS, NEAR = 50, 1e-9


@dataclass(frozen=True)
class LearnedWeights(Election):
    """exp(Σ strength × z) over several signals, each z as in `Weighted`."""

    signals: tuple[str, ...] = ()
    strengths: tuple[float, ...] = ()
    card: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def weights(self, signals: Mapping[str, FloatArray], tokens: FloatArray) -> FloatArray:
        scores = np.zeros(np.shape(tokens))
        for name, strength in zip(self.signals, self.strengths, strict=True):
            scores = scores + strength * standardised(signal_of(name, signals, tokens))
        return exponential(scores)


def save_weights(weights: LearnedWeights, path: str | Path) -> None:
    card = {**weights.card, "kind": KIND, "format": FORMAT, "signals": list(weights.signals)}
    write_tensors(path, {"strengths": np.array(weights.strengths, float)}, card)


def load_weights(path: str | Path) -> LearnedWeights:
    def make(tensors: dict[str, FloatArray], card: dict[str, Any]) -> LearnedWeights:
        if card["kind"] != KIND:
            raise OptionError(f"{path}: this file holds a controller, not weights; make those with suffice weigh")
        signals, strengths = tuple(map(str, card["signals"])), tensors["strengths"]
        if strengths.shape != (len(signals),) or not np.isfinite(strengths).all():
            raise ValueError("a strength for each signal")
        return LearnedWeights(signals, tuple(strengths.tolist()), card)

    return load_tensors(path, "file of weights", "suffice weigh", OptionError, make)


registry.register("file", rest="PATH")(load_weights)


def common_signals(pools: Sequence[Pool]) -> list[str]:
    """Return the signals that all pools have."""
    shared = set.intersection(*map(signals_in, pools))
    return sorted(shared, key=lambda name: (name == LENGTH, name))


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
