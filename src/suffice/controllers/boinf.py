"""Best-of-infinity: stop when the Bayes factor for the leader being the most likely answer is large."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy

from suffice.controllers.base import ArrayController
from suffice.controllers.registry import register
from suffice.tally import FloatArray, IntArray, Tallies

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
