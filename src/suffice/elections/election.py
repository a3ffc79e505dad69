"""Elections: from the answers of a stopped vote to the one that is given, and to the response that stands for it.

They are asked for by `NAME`, `NAME:key=value,key=value` or `file:PATH`, the same string everywhere.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np

from suffice.errors import OptionError, PoolError
from suffice.pools import Pool
from suffice.registry import Registry, classes_of
from suffice.tally import NONE, FloatArray, IntArray

LENGTH = "length"
"""The signal that every response with a count of its tokens has."""

TIED = 1e-9
"""Sums that differ by less than this share of the larger are equal: in another order they might have been."""


class Election(ABC):
    """How much each response's vote weighs; stopping is by counts, whatever the election.

    Arrays have the responses in order of arrival on their last axis; before it there may be others, for many votes at
    once. What is not known is NaN, and weighs neither more nor less for it.

    >>> class Terse(Election):
    ...     signals = ("length",)
    ...
    ...     def weights(self, signals, tokens):
    ...         return 1 / tokens
    >>> int(Terse().elect(np.array([0, 0, 1]), {}, np.array([90.0, 80.0, 20.0])))
    1
    """

    signals: tuple[str, ...] = ()
    """What it weighs with; `length` is the number of tokens."""

    @abstractmethod
    def weights(self, signals: Mapping[str, FloatArray], tokens: FloatArray) -> FloatArray:
        """The weight of each response, at least 0, on any scale."""

    def elect(self, codes: IntArray, signals: Mapping[str, FloatArray], tokens: FloatArray) -> IntArray:
        """The code of the answer with the largest sum of weights; NONE where there is no answer.

        Responses without an answer (NONE) have no vote, and no part in what is usual among the question's. Among equals
        the answer that reached its sum first wins, so that with equal weights this is the plain vote.
        """
        codes = np.asarray(codes)
        answered = codes != NONE
        unknown = np.full(codes.shape, np.nan)
        known = {
            name: np.where(answered, signals.get(name, unknown), np.nan) for name in self.signals if name != LENGTH
        }
        weights = self.weights(known, np.where(answered, tokens, np.nan))
        return largest(codes, usual_where_unknown(np.where(answered, weights, np.nan)))


registry = Registry[Election]("election", "suffice.elections", OptionError, classes_of(Election, "weights"))

register_election = registry.register
"""Make an election usable by name; its parameters are the arguments of its constructor."""


def get_election(spec: str | Election) -> Election:
    """The election that a string describes; an election is returned as it is.

    >>> get_election("weighted:signal=length,strength=-0.4")
    Weighted(signal='length', strength=-0.4)
    """
    return spec if isinstance(spec, Election) else registry.get(spec)


def check_signals(election: Election, pool: Pool) -> None:
    """Refuse a pool that the election has nothing to weigh with in.

    >>> from suffice import load_pool
    >>> from suffice.elections import get_election
    >>> check_signals(get_election("weighted"), load_pool("smollm2-135m__arithmetic"))
    Traceback (most recent call last):
    ...
    suffice.errors.PoolError: smollm2-135m__arithmetic has no signal "logprob", which the election needs: it has length
    """
    if election.signals and any(question.structured for question in pool.questions):
        raise PoolError(f"{pool.name} has structured answers, which are elected field by field and not by weight")
    there = signals_in(pool)
    for name in election.signals:
        if name not in there:
            raise PoolError(
                f'{pool.name} has no signal "{name}", which the election needs: it has '
                f"{', '.join(sorted(there)) or 'none'}"
            )


def signals_in(pool: Pool) -> set[str]:
    """The signals that some response of a pool has, length among them where it tells tokens."""
    columns = [(name, column) for question in pool.questions for name, column in question.signals.items()]
    columns += [(LENGTH, question.tokens or ()) for question in pool.questions]
    return {name for name, column in columns if any(value is not None for value in column)}


def largest(codes: IntArray, weights: FloatArray) -> IntArray:
    """The code with the largest sum of weights in each row, the first to reach it among equals; NONE for none."""
    rows = codes.reshape(-1, codes.shape[-1])
    row, place = np.nonzero(rows != NONE)
    kinds = int(rows.max(initial=0)) + 1
    there = row * kinds + rows[row, place]
    weight = np.broadcast_to(weights, codes.shape).reshape(rows.shape)[row, place]
    sums = np.bincount(there, weight, minlength=len(rows) * kinds).reshape(-1, kinds)
    reached = np.full(sums.shape, rows.shape[1])
    voted = np.bincount(there, minlength=sums.size).reshape(sums.shape) > 0
    counts = weight > 0  # a vote that weighs nothing lifts no sum
    reached.reshape(-1)[there[~counts]] = place[~counts]
    reached.reshape(-1)[there[counts]] = place[counts]
    best = np.where(voted, sums, -1).max(axis=1, keepdims=True)
    tied = voted & (sums >= best * (1 - TIED))
    winner = np.where(tied, reached, rows.shape[1] + 1).argmin(axis=1)
    return np.where(tied.any(axis=1), winner, NONE).reshape(codes.shape[:-1])


def standardised(values: FloatArray) -> FloatArray:
    """How many deviations each value lies above its row's mean; 0 where it is not known, or all are alike."""
    known = ~np.isnan(values)
    number = np.maximum(known.sum(axis=-1, keepdims=True), 1)
    gaps = np.where(known, values - np.where(known, values, 0).sum(axis=-1, keepdims=True) / number, 0)
    deviation = np.sqrt((gaps**2).sum(axis=-1, keepdims=True) / number)
    size = np.where(known, np.abs(values), 0).max(axis=-1, keepdims=True, initial=0)
    alike = deviation <= 1e-9 * size
    return np.where(alike, 0, gaps / np.where(alike, 1, deviation))


def usual_where_unknown(weights: FloatArray) -> FloatArray:
    """The weights, with the mean of the known ones in the place of those that are not; all 1 where none is above 0."""
    known = np.isfinite(weights)
    total = np.where(known, weights, 0).sum(axis=-1, keepdims=True)
    mean = total / np.maximum(known.sum(axis=-1, keepdims=True), 1)
    return np.where(total > 0, np.where(known, weights, mean), 1)
