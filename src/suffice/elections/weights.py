"""The elections that have names: majority, one signal's weight, and those that were published."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from suffice.elections.election import LENGTH, Election, register_election, standardised, usual_where_unknown
from suffice.tally import FloatArray

STEEPEST = 300
"""No weight is further from 1 than the exponential of this: it is all or nothing by then, and sums stay finite."""


def signal_of(name: str, signals: Mapping[str, FloatArray], tokens: FloatArray) -> FloatArray:
    """A signal's values, of which one is the length; not known where there are none."""
    return tokens if name == LENGTH else signals.get(name, np.full(np.shape(tokens), np.nan))


def exponential(scores: FloatArray) -> FloatArray:
    """exp, of what it can be taken of."""
    return np.exp(np.clip(scores, -STEEPEST, STEEPEST))


@register_election("majority")
@dataclass(frozen=True)
class Majority(Election):
    """Every vote weighs the same."""

    def weights(self, signals: Mapping[str, FloatArray], tokens: FloatArray) -> FloatArray:
        """One each."""
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
        """1 for a response that is like the others."""
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
        """The confidence of those that are kept, 0 for others."""
        sure = np.maximum(signals[self.signal], 0)
        kept = sure >= _percentile(sure, 100 - self.keep)
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
        """Shares of 1 among those that are known."""
        sure = signal_of(self.signal, signals, tokens)
        sure = (exponential(sure) if self.signal == "logprob" else sure) / self.temperature
        most = np.where(np.isnan(sure), -np.inf, sure).max(axis=-1, keepdims=True, initial=-np.inf)
        return usual_where_unknown(np.exp(sure - np.where(np.isfinite(most), most, 0)))


def _percentile(values: FloatArray, percent: float) -> FloatArray:
    """That of the known values of each row, by linear interpolation; NaN where none is known."""
    ordered = np.sort(values, axis=-1)  # NaN come last
    last = np.maximum((~np.isnan(values)).sum(axis=-1, keepdims=True) - 1, 0)
    place = last * percent / 100
    below = np.floor(place).astype(np.intp)
    low = np.take_along_axis(ordered, below, axis=-1)
    high = np.take_along_axis(ordered, np.minimum(below + 1, last), axis=-1)
    return low + (high - low) * (place - below)
