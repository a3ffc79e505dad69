"""The published rules: asking once, SC, ASC, ESC, its_hub's doubling, ConSol's test and best-of-infinity."""

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import ClassVar

import numpy as np
import scipy

from suffice.controllers.base import ArrayController
from suffice.controllers.files import register
from suffice.tally import NONE, FloatArray, IntArray, Tallies


@register("once")
@dataclass(frozen=True)
class Once(ArrayController):
    """One draw and no vote: what everybody compares with."""

    def decide_many(self, tallies: Tallies) -> IntArray:
        return np.where(tallies.draws == 0, 1, 0)


@register("sc")
@dataclass(frozen=True)
class SelfConsistency(ArrayController):
    """Self-consistency (Wang et al., 2022): one round of `draws` (the budget unless given), then stop."""

    needs_rounds: ClassVar[bool] = True

    draws: int | None = None

    def __post_init__(self) -> None:
        self.require("draws", self.draws is None or self.draws >= 1, "at least 1")

    def decide_many(self, tallies: Tallies) -> IntArray:
        return np.where(tallies.draws == 0, min(self.draws or tallies.budget, tallies.budget), 0)


@register("asc")
@dataclass(frozen=True)
class AdaptiveSelfConsistency(ArrayController):
    """Adaptive self-consistency (Aggarwal et al., 2023): one draw a round, until the leader surely beats the second.

    Sure means that P(leader's share > runner-up's share), under the Beta posterior of the two, reaches `threshold`.
    """

    threshold: float = 0.95

    def __post_init__(self) -> None:
        self.require("threshold", 0 < self.threshold <= 1, "above 0 and at most 1")

    def decide_many(self, tallies: Tallies) -> IntArray:
        first, second = tallies.top(2).T
        sure = lead_probabilities(tallies.budget)[first, second] >= self.threshold
        return np.where(sure & (first > 0), 0, 1)


@cache
def lead_probabilities(budget: int) -> FloatArray:
    """P(the first's share > the second's) by their votes a and b: 1 − I_½(a+1, b+1), which is I_½(b+1, a+1)."""
    first, second = np.ogrid[: budget + 1, : budget + 1]
    return scipy.special.betainc(second + 1, first + 1, 0.5)


@register("esc")
@dataclass(frozen=True)
class EarlyStoppingSelfConsistency(ArrayController):
    """Early-stopping self-consistency (Li et al., 2024): windows of `window` draws, until one is unanimous."""

    needs_rounds: ClassVar[bool] = True

    window: int = 5

    def __post_init__(self) -> None:
        self.require("window", self.window >= 1, "at least 1")

    def decide_many(self, tallies: Tallies) -> IntArray:
        size = min(self.window, tallies.budget)
        into_window = tallies.draws % size
        window = tallies.last(size)
        unanimous = (window == window[:, :1]).all(axis=1) & (window[:, 0] != NONE)
        return np.where((into_window == 0) & unanimous, 0, size - into_window)


@register("doubling")
@dataclass(frozen=True)
class Doubling(ArrayController):
    """its_hub's adaptive self-consistency: 2 draws, then as many again as there are, until the leader dominates.

    To dominate is to have at least `threshold` of the answers given.
    """

    needs_rounds: ClassVar[bool] = True

    threshold: float = 0.75

    def __post_init__(self) -> None:
        self.require("threshold", 0 < self.threshold <= 1, "above 0 and at most 1")

    def decide_many(self, tallies: Tallies) -> IntArray:
        leader, given = tallies.votes[:, 0], tallies.votes.sum(axis=1)
        dominates = leader / np.maximum(given, 1) >= self.threshold
        return np.where(dominates, 0, np.maximum(tallies.draws, 2))


@register("consol")
@dataclass(frozen=True)
class ConSol(ArrayController):
    """ConSol (Lee et al., 2025): a mixture SPRT between the two largest counts, with the package's defaults.

    A round has as many draws as would end the test if they all went to the leader.
    """

    alpha: float = 0.05
    beta: float = 1 - 0.05 - 0.00006
    prior: float = 1e6

    def __post_init__(self) -> None:
        self.require("alpha", 0 < self.alpha < 1, "above 0 and below 1")
        self.require("beta", 0 < self.beta < 1, "above 0 and below 1")
        self.require("prior", 0 < self.prior < np.inf, "above 0")

    def decide_many(self, tallies: Tallies) -> IntArray:
        first, second = tallies.top(2).T
        return _draws_to_end(self, tallies.budget)[first, second]


def log_likelihood_ratios(first: IntArray, second: IntArray, prior: float) -> FloatArray:
    """The leader's share of the two is above ½, with a Beta(prior, prior) density there, against that it is ½."""
    below_half = scipy.special.betainc(first + prior, second + prior, 0.5)
    above_half = scipy.special.betaln(first + prior, second + prior) + np.log(1 - below_half)
    return above_half - scipy.special.betaln(prior, prior) - np.log(0.5) * (first + second + 1)


@lru_cache(maxsize=16)
def _draws_to_end(test: ConSol, budget: int) -> IntArray:
    """How many draws for the leader end the test, by the two largest counts; all of the budget where none do."""
    first, second = np.ogrid[: budget + 1, : budget + 1]
    ratios = log_likelihood_ratios(first, second, test.prior)
    differ, alike = np.log((1 - test.beta) / test.alpha), np.log(test.beta / (1 - test.alpha))
    ends = ((ratios >= differ) | (ratios <= alike)) & (first > 0)
    at = np.where(ends, first, 2 * budget + 1)
    # The nearest count at or above each that ends it.
    nearest = np.minimum.accumulate(at[::-1], axis=0)[::-1]
    return np.minimum(nearest - first, budget)


NODES = 64
"""Points of the Gauss–Legendre rule: enough for errors of about 1e-9."""


@register("boinf")
@dataclass(frozen=True)
class BestOfInfinity(ArrayController):
    """Best-of-infinity (Komiyama et al., 2026): one draw a round, until the Bayes factor reaches `factor`.

    The shares have a Dirichlet posterior, with a bucket of pseudo-count `unknown` for the answers not seen yet.
    """

    factor: float = 10
    unknown: float = 0.3

    def __post_init__(self) -> None:
        self.require("factor", 0 < self.factor < np.inf, "above 0")
        self.require("unknown", 0 <= self.unknown < np.inf, "at least 0")

    def decide_many(self, tallies: Tallies) -> IntArray:
        """One more until the factor is reached; a tie for the lead never stops."""
        first, second = tallies.top(2).T
        asked = np.ones(len(tallies), int)
        untied = np.flatnonzero(first > second)
        shapes, where = np.unique(tallies.votes[untied], axis=0, return_inverse=True)
        classes = (shapes > 0).sum(axis=1) + 1
        leads = largest_probabilities(shapes, self.unknown)
        stops = classes * leads >= self.factor * (1 - leads)
        asked[untied[stops[where]]] = 0
        return asked


def largest_probabilities(votes: IntArray, unknown: float) -> FloatArray:
    """P(the first answer's share is the largest) for rows of votes, most first, and the bucket of unseen answers.

    Dirichlet shares are Gamma variables over their sum, so this is the chance that the first of independent
    Gamma variables is the largest: the integral of its density times the others' distribution functions.
    """
    probabilities = np.empty(len(votes))
    for leader in np.unique(votes[:, 0]):
        rows = votes[:, 0] == leader
        weights, log_cdf = _quadrature(int(leader), unknown)
        others = votes[rows, 1:]
        below = np.zeros((len(others), len(weights)))
        for column in others[:, others.any(axis=0)].T:
            below += log_cdf[column]
        probabilities[rows] = np.exp(below) @ weights
    return probabilities


@cache
def _quadrature(leader: int, unknown: float) -> tuple[FloatArray, FloatArray]:
    """Weights and log distribution functions at the nodes, for a leader with so many votes.

    The weights hold the leader's density and the bucket's distribution function; row v of the second belongs to
    an answer with v votes, and row 0 to no answer at all.
    """
    low, high = np.cbrt(scipy.special.gammaincinv(leader + 1, [1e-14, 1 - 1e-14]))
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    # Integrated over the cube root of x: near 0 the bucket's distribution function is a broken power of x.
    root = low + (high - low) * (nodes + 1) / 2
    x = root**3
    density = np.exp(leader * np.log(x) - x - scipy.special.gammaln(leader + 1)) * 3 * root**2
    log_cdf = np.log(scipy.special.gammainc(np.arange(leader + 1)[:, None] + 1, x))
    log_cdf[0] = 0
    return weights * (high - low) / 2 * density * scipy.special.gammainc(unknown + 1, x), log_cdf
