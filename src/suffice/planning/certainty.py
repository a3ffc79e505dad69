"""The certainty: the probability, under the model of answers, that unlimited sampling elects the present leader.

Given (α, d), the shares of the k answers and of the rest are Dirichlet(c₁ − d, …, α + k d): independent Gamma variables
over their sum. Of the rest, a Gamma variable that breaks up like a Pitman–Yor process, no answer exceeds x with
probability (1 + Λ(x)) ^ −(α + k d)/d, where Λ(x) = d Γ(−d, x) / Γ(1 − d) (Pitman and Yor, 1997, proposition 21; for
d = 0 it is exp(−α E₁(x))). So the chance that the leader has the largest share is an integral over its variable alone.
"""

from collections import Counter
from functools import lru_cache

import numpy as np
from scipy.special import exp1, gamma, gammainc, gammaincc, gammaincinv, gammaln

from suffice.planning.model import CONCENTRATIONS, DISCOUNTS, UNIVERSAL, Prior, posterior
from suffice.tally import FloatArray, Tallies, Tally

NODES = 64
"""Points of the trapezoidal rule over log x: enough for errors of about 1e-6 with up to 512 votes."""

NEGLIGIBLE = 1e-10

MOST_KNOWN = 65_536

MOST_FOR_ONE_VOTE = 0.89
"""No prior makes a single vote a sure thing: nothing has agreed with it yet."""


def certainty(tally: Tally, prior: Prior = UNIVERSAL) -> float | None:
    """The probability that the present leader has the largest share of all; None where there is no answer.

    It knows no budget, so it is what tells hard questions from easy ones once all draws are made. Like the confidence
    it doesn't say that the answer is right.

    >>> tally = Tally()
    >>> tally.add_round(["72", "72"])
    >>> round(certainty(tally), 2)
    0.88
    """
    votes = _votes(tally)
    return _certainty(votes, prior) if votes else None


def is_certainty_known(tally: Tally, prior: Prior = UNIVERSAL) -> bool:
    """Whether it was worked out before, so that it takes no time to speak of."""
    votes = _votes(tally)
    return not votes or votes in prior.certainties


def _votes(tally: Tally) -> tuple[int, ...]:
    return tuple(filter(None, tally.top(tally.draws)))


def certainties(tallies: Tallies, prior: Prior = UNIVERSAL) -> FloatArray:
    """The certainty of each row; NaN where there are no votes."""
    rows, where = np.unique(tallies.votes, axis=0, return_inverse=True)
    counts = (tuple(filter(None, row)) for row in rows.tolist())
    found = np.array([_certainty(votes, prior) if votes else np.nan for votes in counts])
    return found[where.ravel()]


def _certainty(votes: tuple[int, ...], prior: Prior) -> float:
    """By the votes, most first. A draw without an answer is none of them: it never wins, and measured as an answer of
    its own, as the confidence has it, it makes the certainty less true.
    """
    known = prior.certainties.get(votes)
    if known is None:
        known = float((posterior(np.array([votes]), prior)[0] * _largest(votes)).sum())
        known = min(known, 1.0 if votes[0] > 1 else MOST_FOR_ONE_VOTE)
        if len(prior.certainties) >= MOST_KNOWN:
            prior.certainties.clear()
        prior.certainties[votes] = known
    return known


@lru_cache(maxsize=8192)
def _largest(votes: tuple[int, ...]) -> FloatArray:
    """The chance that the leader has the largest share, at each point of the grid: the prior has no part in it."""
    weights, threat = _leader(votes[0])
    below = sum(count * _log_below(votes[0], size) for size, count in Counter(votes[1:]).items())
    rest = CONCENTRATIONS[:, None, None] + len(votes) * DISCOUNTS[:, None]
    largest: FloatArray = (weights * np.exp(below - rest * threat)).sum(axis=2)
    return largest


@lru_cache(maxsize=512)
def _nodes(leader: int) -> tuple[FloatArray, FloatArray]:
    """Points for a leader's Gamma variable, a row a discount, and the steps between their logarithms."""
    shape = leader - DISCOUNTS
    # Nothing is lost below 1e-9: where the leader is that small, the rest is larger.
    low = np.log(np.maximum(gammaincinv(shape, NEGLIGIBLE), 1e-9))
    step = (np.log(gammaincinv(shape, 1 - NEGLIGIBLE)) - low) / (NODES - 1)
    return np.exp(low[:, None] + step[:, None] * np.arange(NODES)), step[:, None]


@lru_cache(maxsize=512)
def _leader(leader: int) -> tuple[FloatArray, FloatArray]:
    """At the nodes: the leader's density as weights, and the threat of the unseen: log(1 + Λ(x)) / d."""
    x, step = _nodes(leader)
    shape, d = (leader - DISCOUNTS)[:, None], DISCOUNTS[1:, None]
    weights = np.exp(shape * np.log(x) - x - gammaln(shape)) * step
    exceeding = x[1:] ** -d * np.exp(-x[1:]) / gamma(1 - d) - gammaincc(1 - d, x[1:])
    return weights, np.concatenate([exp1(x[:1]), np.log1p(exceeding) / d])


@lru_cache(maxsize=4096)
def _log_below(leader: int, size: int) -> FloatArray:
    """At the leader's nodes: the log probability that an answer with so many votes has less."""
    with np.errstate(divide="ignore"):
        logs: FloatArray = np.log(gammainc(size - DISCOUNTS[:, None], _nodes(leader)[0]))
    return logs
