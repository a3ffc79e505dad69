"""Elections: from the answers of a stopped vote to the one that is given, and to the response that stands for it.

They are asked for by `NAME`, `NAME:key=value,key=value` or `file:PATH`, the same string everywhere.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from suffice.errors import OptionError, PoolError
from suffice.pools import Pool
from suffice.registry import Registry, classes_of
from suffice.tally import NONE, FloatArray, IntArray

LENGTH = "length"  # the signal of all responses with tokens
TIED = 1e-9  # share: sums that differ by less depend on their order
STEEPEST = 300  # exponent of a weight that is all or nothing; sums stay finite


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
    """Return the election that a string describes."""
    return spec if isinstance(spec, Election) else registry.get(spec)


def check_signals(election: Election, pool: Pool) -> None:
    """Refuse a pool that the election has nothing to weigh with in."""
    if election.signals and any(question.structured for question in pool.questions):
        raise PoolError(f"{pool.name} has structured answers, which are elected field by field and not by weight")
    there = sorted(signals_in(pool))
    known = ", ".join(there) or "none"
    for name in election.signals:
        if name not in there:
            raise PoolError(f'{pool.name} has no signal "{name}", which the election needs: it has {known}')


def signals_in(pool: Pool) -> set[str]:
    """Return the signals of a pool, with length where tokens are known."""
    columns = [(name, column) for question in pool.questions for name, column in question.signals.items()]
    columns += [(LENGTH, question.tokens or ()) for question in pool.questions]
    return {name for name, column in columns if any(value is not None for value in column)}


def largest(codes: IntArray, weights: FloatArray) -> IntArray:
    """Return each row's code with the largest weight, the first of equals; NONE for none."""
    rows = codes.reshape(-1, codes.shape[-1])
    row, place = np.nonzero(rows != NONE)
    kinds = int(rows.max(initial=0)) + 1
    there = row * kinds + rows[row, place]
    weight = np.broadcast_to(weights, codes.shape).reshape(rows.shape)[row, place]
    sums = np.bincount(there, weight, minlength=len(rows) * kinds).reshape(-1, kinds)
    reached = np.full(sums.shape, rows.shape[1])
    voted = np.bincount(there, minlength=sums.size).reshape(sums.shape) > 0
    order = np.argsort(weight > 0, kind="stable")  # a vote that weighs nothing lifts no sum: it is overwritten
    reached.reshape(-1)[there[order]] = place[order]
    best = np.where(voted, sums, -1).max(axis=1, keepdims=True)
    tied = voted & (sums >= best * (1 - TIED))
    winner = np.where(tied, reached, rows.shape[1] + 1).argmin(axis=1)
    return np.where(tied.any(axis=1), winner, NONE).reshape(codes.shape[:-1])


def standardised(values: FloatArray) -> FloatArray:
    """Return z-scores by row; 0 where a value is unknown, or all are alike."""
    known = ~np.isnan(values)
    number = np.maximum(known.sum(axis=-1, keepdims=True), 1)
    gaps = np.where(known, values - np.where(known, values, 0).sum(axis=-1, keepdims=True) / number, 0)
    deviation = np.sqrt((gaps**2).sum(axis=-1, keepdims=True) / number)
    size = np.where(known, np.abs(values), 0).max(axis=-1, keepdims=True, initial=0)
    alike = deviation <= 1e-9 * size
    return np.where(alike, 0, gaps / np.where(alike, 1, deviation))


def usual_where_unknown(weights: FloatArray) -> FloatArray:
    """Fill unknown weights with the mean; all are 1 where none is above 0."""
    known = np.isfinite(weights)
    total = np.where(known, weights, 0).sum(axis=-1, keepdims=True)
    mean = total / np.maximum(known.sum(axis=-1, keepdims=True), 1)
    return np.where(total > 0, np.where(known, weights, mean), 1)


def signal_of(name: str, signals: Mapping[str, FloatArray], tokens: FloatArray) -> FloatArray:
    """Return a signal's values, NaN where there are none."""
    return tokens if name == LENGTH else signals.get(name, np.full(np.shape(tokens), np.nan))


def exponential(scores: FloatArray) -> FloatArray:
    return np.exp(np.clip(scores, -STEEPEST, STEEPEST))


@register_election("majority")
@dataclass(frozen=True)
class Majority(Election):
    """Every vote weighs the same."""

    def weights(self, signals: Mapping[str, FloatArray], tokens: FloatArray) -> FloatArray:
        return np.ones(np.shape(tokens))


@register_election("weighted")
@dataclass(frozen=True)
class Weighted(Election):
    """exp(strength × z), z being the signal standardised among the question's responses that have an answer.

    >>> Weighted().weights({"logprob": np.array([-0.1, -0.3, np.nan])}, np.full(3, np.nan)).round(2)
    array([1.49, 0.67, 1.  ])
    """

    signal: str = "logprob"
    strength: float = 0.4

    def __post_init__(self) -> None:
        if not np.isfinite(self.strength):
            raise ValueError(f"strength must be a finite number, not {self.strength:g}")
        object.__setattr__(self, "signals", (self.signal,))

    def weights(self, signals: Mapping[str, FloatArray], tokens: FloatArray) -> FloatArray:
        return exponential(self.strength * standardised(signal_of(self.signal, signals, tokens)))


@register_election("deepconf")
@dataclass(frozen=True)
class DeepConf(Election):
    """DeepConf's offline vote: each response weighs its confidence, and only the surest `keep` percent have a vote.

    As in its authors' code: those at or above that percentile of the question's responses with an answer.
    """

    signal: str = "tail"
    keep: float = 10

    def __post_init__(self) -> None:
        if self.signal not in ("confidence", "tail", "lowest"):
            raise ValueError(f'signal must be confidence, tail or lowest, not "{self.signal}"')
        if not 0 < self.keep <= 100:
            raise ValueError(f"keep must be above 0 and at most 100, not {self.keep:g}")
        object.__setattr__(self, "signals", (self.signal,))

    def weights(self, signals: Mapping[str, FloatArray], tokens: FloatArray) -> FloatArray:
        sure = np.maximum(signals[self.signal], 0)
        kept = sure >= _least_above(sure, 100 - self.keep)
        return usual_where_unknown(np.where(np.isnan(sure), np.nan, np.where(kept, sure, 0)))


@register_election("cisc")
@dataclass(frozen=True)
class Cisc(Election):
    """CISC's vote: a softmax of the confidences of a question's responses, sharper the lower the temperature.

    `logprob` is taken as the probability that CISC takes, exp(logprob); other signals are taken as they are.
    """

    signal: str = "logprob"
    temperature: float = 0.1

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise ValueError(f"temperature must be above 0, not {self.temperature:g}")
        object.__setattr__(self, "signals", (self.signal,))

    def weights(self, signals: Mapping[str, FloatArray], tokens: FloatArray) -> FloatArray:
        sure = signal_of(self.signal, signals, tokens)
        sure = (exponential(sure) if self.signal == "logprob" else sure) / self.temperature
        most = np.where(np.isnan(sure), -np.inf, sure).max(axis=-1, keepdims=True, initial=-np.inf)
        return usual_where_unknown(np.exp(sure - np.where(np.isfinite(most), most, 0)))


def _least_above(values: FloatArray, percent: float) -> FloatArray:
    """Return the least value of each row that is at or above a percentile."""
    last = np.maximum((~np.isnan(values)).sum(axis=-1, keepdims=True) - 1, 0)
    place = np.ceil(last * percent / 100).astype(np.intp)
    return np.take_along_axis(np.sort(values, axis=-1), place, axis=-1)  # NaN come last
