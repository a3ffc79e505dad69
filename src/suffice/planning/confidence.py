"""How sure a vote is: confidence, that the full budget would elect the same; certainty, that endless draws would."""

from collections import Counter
from functools import lru_cache

import numpy as np
import scipy

from suffice.planning.approximate import confidence_table
from suffice.planning.model import (
    CONCENTRATIONS,
    DISCOUNTS,
    EXACT_BUDGET,
    LARGEST_BUDGET,
    UNIVERSAL,
    Prior,
    build_model,
    posterior,
)
from suffice.planning.tables import Table
from suffice.tally import FloatArray, Tallies, Tally


def confidence(tally: Tally, prior: Prior = UNIVERSAL) -> float | None:
    """The probability that the present leader is what the full budget would elect.

    It says that more sampling would not change the answer, not that the answer is right. Above a budget of 48 it is
    approximate.

    Args:
        tally: What has been seen of the question; its budget is the full one.
        prior: What is expected of answers, where something is known of them: `plan.prior` of a plan that was fitted.

    Returns:
        A share, or None for a budget above 512, which is too large to tell.

    >>> tally = Tally(budget=32)
    >>> tally.add_round(["42", "42", "17", "42"])
    >>> round(confidence(tally), 2)
    0.89
    """
    if tally.budget > LARGEST_BUDGET:
        return None
    if tally.leader is None and tally.left:
        return 0.0
    return min(1.0, _table(tally.budget, prior).find("confidence", tally))


def confidences(tallies: Tallies, prior: Prior = UNIVERSAL) -> FloatArray:
    """The confidence of each row; 0 where there are no votes."""
    found = _table(tallies.budget, prior).find_many("confidence", tallies)
    # Without votes there is no leader, though nobody can take the lead from none once the budget is spent.
    return np.where((tallies.top(1)[:, 0] > 0) | (tallies.draws == tallies.budget), found, 0)


def prepare(budget: int, prior: Prior = UNIVERSAL) -> None:
    """Make a confidence with this budget one that takes no time to speak of."""
    if budget <= LARGEST_BUDGET:
        _table(budget, prior)


def is_ready(budget: int, prior: Prior = UNIVERSAL) -> bool:
    """Whether a confidence with this budget takes no time to speak of."""
    return budget in prior.tables or budget > LARGEST_BUDGET


def _table(budget: int, prior: Prior) -> Table:
    def make() -> Table:
        if budget > EXACT_BUDGET:
            return confidence_table(budget, prior)
        model = build_model(budget, prior)
        return Table(model.levels, {"confidence": np.concatenate(model.confidence)})

    return prior.tables.get(budget, make)


NODES = 64
"""Points of the trapezoidal rule over log x: enough for errors of about 1e-6 with up to 512 votes."""

NEGLIGIBLE = 1e-10

MOST_FOR_ONE_VOTE = 0.89
"""No prior makes a single vote a sure thing: nothing has agreed with it yet."""


def certainty(tally: Tally, prior: Prior = UNIVERSAL) -> float | None:
    """The probability that the present leader is what unlimited sampling would elect.

    It knows no budget, so it is what tells hard questions from easy ones once all draws are made. Like the confidence
    it doesn't say that the answer is right.

    Args:
        tally: What has been seen of the question.
        prior: What is expected of answers, as for `confidence`.

    Returns:
        A share, or None where there is no answer.

    >>> tally = Tally()
    >>> tally.add_round(["72", "72"])
    >>> round(certainty(tally), 2)
    0.88
    """
    return _certainty(tuple(tally.votes.values()), prior) if tally.votes else None


def is_certainty_known(tally: Tally, prior: Prior = UNIVERSAL) -> bool:
    """Whether it was worked out before, so that it takes no time to speak of."""
    return not tally.votes or tuple(tally.votes.values()) in prior.certainties


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
    most = 1.0 if votes[0] > 1 else MOST_FOR_ONE_VOTE
    return prior.certainties.get(votes, lambda: min(float((posterior(votes, prior) * _largest(votes)).sum()), most))


@lru_cache(maxsize=8192)
def _largest(votes: tuple[int, ...]) -> FloatArray:
    """The chance that the leader has the largest share, at each point of the grid: the prior has no part in it."""
    weights, threat = _leader(votes[0])
    below = sum(count * _log_below(votes[0], size) for size, count in Counter(votes[1:]).items())
    rest = CONCENTRATIONS[:, None, None] + len(votes) * DISCOUNTS[:, None]
    return (weights * np.exp(below - rest * threat)).sum(axis=2)


@lru_cache(maxsize=512)
def _nodes(leader: int) -> tuple[FloatArray, FloatArray]:
    """Points for a leader's Gamma variable, a row a discount, and the steps between their logarithms."""
    shape = leader - DISCOUNTS
    # Nothing is lost below 1e-9: where the leader is that small, the rest is larger.
    low = np.log(np.maximum(scipy.special.gammaincinv(shape, NEGLIGIBLE), 1e-9))
    step = (np.log(scipy.special.gammaincinv(shape, 1 - NEGLIGIBLE)) - low) / (NODES - 1)
    return np.exp(low[:, None] + step[:, None] * np.arange(NODES)), step[:, None]


@lru_cache(maxsize=512)
def _leader(leader: int) -> tuple[FloatArray, FloatArray]:
    """At the nodes: the leader's density as weights, and the threat of the unseen: log(1 + Λ(x)) / d."""
    x, step = _nodes(leader)
    shape, d = (leader - DISCOUNTS)[:, None], DISCOUNTS[1:, None]
    weights = np.exp(shape * np.log(x) - x - scipy.special.gammaln(shape)) * step
    exceeding = x[1:] ** -d * np.exp(-x[1:]) / scipy.special.gamma(1 - d) - scipy.special.gammaincc(1 - d, x[1:])
    return weights, np.concatenate([scipy.special.exp1(x[:1]), np.log1p(exceeding) / d])


@lru_cache(maxsize=4096)
def _log_below(leader: int, size: int) -> FloatArray:
    """At the leader's nodes: the log probability that an answer with so many votes has less."""
    with np.errstate(divide="ignore"):
        return np.log(scipy.special.gammainc(size - DISCOUNTS[:, None], _nodes(leader)[0]))
