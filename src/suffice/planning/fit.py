"""Fitting the prior to pools: which (α, d) their questions have, by expectation and maximisation."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from suffice.planning.model import CONCENTRATIONS, DISCOUNTS, UNIVERSAL, Prior, log_likelihoods
from suffice.pools import AnyPool, Question, get_pools
from suffice.tally import FloatArray, IntArray

ROUNDS = 500


@dataclass(frozen=True)
class Fit:
    """A fitted prior, and how much likelier it makes a question's answers than the universal one does."""

    prior: Prior
    nats_gained: float

    @property
    def typical(self) -> tuple[float, float]:
        """The geometric mean of the concentration and the mean of the discount."""
        grid = self.prior.grid
        return float(np.exp((grid.sum(axis=1) * np.log(CONCENTRATIONS)).sum())), float(
            (grid.sum(axis=0) * DISCOUNTS).sum()
        )


def fit_prior(pools: AnyPool | Sequence[AnyPool]) -> Fit:
    """The mixture weights under which the pools are likeliest; each question counts once, with all its responses."""
    questions = [question for pool in get_pools(pools) for question in pool.questions if question.answers]
    logs = np.concatenate([log_likelihoods(_parts(question)) for question in questions]).reshape(len(questions), -1)
    likelihoods = np.exp(logs - logs.max(axis=1, keepdims=True))
    start = np.array(UNIVERSAL.weights)
    weights = maximise(likelihoods, np.ones(len(questions)))
    gained = np.log(likelihoods @ weights).mean() - np.log(likelihoods @ start).mean()
    return Fit(Prior(tuple(weights.tolist())), float(gained))


def maximise(likelihoods: FloatArray, counts: FloatArray, universal: float = 0) -> FloatArray:
    """The weights under which rows of likelihoods, that occur so often, are likeliest.

    The universal prior counts as so many more whose point of the grid is known: then there is one best solution.
    """
    start: FloatArray = np.array(UNIVERSAL.weights)
    weights = start
    for _ in range(ROUNDS):
        expected = (counts / (likelihoods @ weights)) @ likelihoods
        weights = (universal * start + weights * expected) / (universal + counts.sum())
    normalised: FloatArray = weights / weights.sum()
    return normalised


def _parts(question: Question) -> IntArray:
    """The partition of a question's responses, as one row: each none is a part of its own."""
    counts = np.bincount(question.codes[question.codes >= 0])
    parts = np.sort(np.concatenate([counts[counts > 0], np.ones((question.codes < 0).sum(), int)]))[::-1]
    return np.pad(parts, (0, len(question.answers) - len(parts)))[None, :]
