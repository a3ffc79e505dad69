"""ConSol's sequential test: stop when the leader is likelier than the runner-up, or when they can't be told apart."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy

from suffice.controllers.base import ArrayController
from suffice.controllers.registry import register
from suffice.tally import FloatArray, IntArray, Tallies


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
        """As many as the test may end with."""
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
