"""Right: the probability that the elected answer is right, learned from labels, and where it is enough to answer.

How votes rank is fixed before any label is seen, by a score that was learned once from the bundled pools. Labels say
only what a score is worth. So the same labels may test a threshold: none had a say in the order that it tests.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy

from suffice.errors import OptionError
from suffice.jsonl import json_object
from suffice.paths import is_there, write_whole
from suffice.tally import FloatArray, IntArray, Tally

SHARE, DRAWS, NONE, SIGNAL = 1.29, 0.32, -1.58, 0.56
"""What the score makes of a vote: by scripts/learn_right.py, from the bundled pools alone."""

LEVEL, LEVEL_SPREAD, SLOPE_SPREAD = -0.39, 1.0, 0.4
"""What is expected of a model before its labels: the level of its scores, and how far level and slope may be off.

The spreads are wider than those between the bundled pools, which are of two families of small models.
"""

SIGNALS = ("lowest", "tail", "confidence", "logprob")
"""The signals that a score may use, the one that tells most first."""

FARTHEST = 3.0
"""A signal counts for no more than so many standard deviations."""

THRESHOLDS = np.arange(140, -140, -1) / 10
"""Scores that may become a threshold, the strictest first: fixed, so that no label chooses them."""

FEWEST = 30
"""Fewer labels than this say too little."""

FORMAT = 1
KIND = "calibration"


def score(leader: Any, draws: Any, none: Any, signal: Any = 0.0) -> Any:
    """How votes rank by the chance to be right, from numbers or arrays of them.

    These are the votes of the answer, all draws, those without an answer, and the standardised signal of the answer.
    """
    odds = np.log((leader + 0.5) / (draws - leader + 0.5))
    return SHARE * odds + DRAWS * np.log(draws / 8) + NONE * none / draws + SIGNAL * signal


class SignalScale(NamedTuple):
    """What a signal usually is: the mean over votes, and the standard deviation."""

    name: str
    mean: float
    deviation: float

    def standard(self, values: Any) -> Any:
        """How far a value, or each of an array, is from the mean; 0 where it is not known."""
        return np.nan_to_num((values - self.mean) / self.deviation).clip(-FARTHEST, FARTHEST)


@dataclass(frozen=True, eq=False)
class Calibration:
    """What votes of one model on one kind of question are worth, by labels; `suffice.calibrate` makes one.

    >>> import suffice
    >>> calibration = suffice.calibrate("qwen2.5-coder-1.5b__gsm8k")
    >>> tally = suffice.Tally()
    >>> tally.add_round(["72", "72", "72", "72"])
    >>> round(calibration.right(tally), 2)
    0.92
    >>> calibration.threshold(risk=0.1) is None, round(calibration.threshold(risk=0.2), 2)
    (True, 0.86)
    """

    level: float
    slope: float
    scores: FloatArray = field(repr=False)
    """Of each label, the score of one vote."""
    truths: IntArray = field(repr=False)
    """Whether that vote elected what is right."""
    signal: SignalScale | None = None
    card: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def right(self, tally: Tally, signal: float | None = None) -> float | None:
        """The probability that the answer with most votes is right.

        Args:
            tally: The vote, at its stop.
            signal: Where the calibration has learned from a signal, its mean over those who gave the answer.

        Returns:
            A share, or None where there is no answer.
        """
        if tally.leader is None:
            return None
        top = tally.top(tally.draws)
        known = 0.0 if self.signal is None or signal is None else self.signal.standard(signal)
        return self.at(score(top[0], tally.draws, tally.draws - sum(top), known))

    def at(self, scored: float) -> float:
        """What a score is worth."""
        return float(1 / (1 + np.exp(-(self.level + self.slope * scored))))

    def score_at(self, right: float) -> float:
        """The score that is worth so much."""
        return float((np.log(right / (1 - right)) - self.level) / self.slope)

    def threshold(self, risk: float = 0.1, confidence: float = 0.9) -> float | None:
        """From what probability on to answer, so that few of the answers are wrong.

        Thresholds are tested from the strictest that enough labels reach to the mildest that passes, each by the exact
        binomial tail (fixed-sequence testing): a guarantee for any number of labels, as long as the questions to come
        are like those that were labelled. Where the tests begin depends on how many labels there are, not on what they
        say: this costs nothing where surer votes are wrong no more often than others.

        Args:
            risk: The largest share of wrong ones among the answered.
            confidence: How sure it shall be that this is kept.

        Returns:
            A probability, or None where no threshold does it: there are too few labels, or too few right answers.
        """
        for name, value in (("risk", risk), ("confidence", confidence)):
            if not (isinstance(value, Real) and 0 < value < 1):
                raise OptionError(f"must be between 0 and 1, not {value}", name)
        fewest = np.log(1 - confidence) / np.log(1 - risk)  # so many, all of them right, prove it
        passed = None
        for least in THRESHOLDS:
            answered = self.scores >= least
            tested = int(answered.sum())
            if tested < fewest:
                continue
            wrong = tested - int(self.truths[answered].sum())
            if scipy.special.bdtr(wrong, tested, risk) > 1 - confidence:
                break
            passed = self.at(least)
            if tested == len(self.scores):
                break
        return passed

    def doubts(self, controller: str, budget: int, risk: float | None = None) -> list[str]:
        """What to know before it is used, a sentence each; nothing where all is well.

        Args:
            controller: Who stops the votes that it is used on.
            budget: The most draws of them.
            risk: The share of wrong answers that shall be promised.
        """
        learned = self.card.get("controller", controller), self.card.get("budget", budget)
        name = "the calibration from " + ", ".join(one["name"] for one in self.card.get("pools", ()))
        found = []
        if learned != (controller, budget):
            found.append(
                f"{name} is of votes by {learned[0]} with a budget of {learned[1]}, and these are by {controller} with "
                f"{budget}: what it says may not hold; calibrate with the same"
            )
        if risk is not None and self.threshold(risk) is None:
            found.append(f"{name} proves no risk of {risk:g}: no answer will be sure enough")
        return found

    def save(self, path: str | Path) -> None:
        """Write it as a JSON file, which `suffice.load_calibration` reads.

        Args:
            path: The file; what was there is replaced.

        Raises:
            OptionError: Where it can't be written.
        """
        told = {
            **self.card,
            "kind": KIND,
            "format": FORMAT,
            "level": self.level,
            "slope": self.slope,
            "signal": self.signal and self.signal._asdict(),
            "scores": self.scores.tolist(),
            "truths": self.truths.tolist(),
        }
        write_whole(Path(path), (json.dumps(told, allow_nan=False) + "\n").encode())


def load_calibration(path: str | Path) -> Calibration:
    """Read a calibration.

    Args:
        path: What `Calibration.save` or `suffice calibrate` wrote.

    Raises:
        OptionError: Where there is no such file, or it is not whole, or of a newer format.

    >>> load_calibration("no-such-file.json")
    Traceback (most recent call last):
    ...
    suffice.errors.OptionError: no-such-file.json: there is no such calibration; make one with suffice calibrate
    """
    if not is_there(Path(path)):
        raise OptionError(f"{path}: there is no such calibration; make one with suffice calibrate")
    try:
        told = json_object(Path(path).read_text(encoding="utf-8"), "a calibration")
        if told["kind"] == KIND and told["format"] > FORMAT:
            raise OptionError(f"{path}: this calibration has format {told['format']}, newer than this suffice knows")
        level, slope = float(told["level"]), float(told["slope"])
        scores, truths = np.array(told["scores"], float), np.array(told["truths"], int)
        signal = told["signal"] and SignalScale(**told["signal"])
        whole = scores.ndim == 1 and scores.shape == truths.shape and np.isfinite([level, slope, *scores]).all()
        if told["kind"] != KIND or not whole or slope <= 0 or not np.isin(truths, (0, 1)).all():
            raise ValueError
    except (OSError, KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise OptionError(f"{path}: this is not a whole calibration; make one with suffice calibrate") from None
    return Calibration(level, slope, scores, truths, signal, told)


def learn(scores: FloatArray, truths: FloatArray) -> tuple[float, float]:
    """The level and the slope under which labels are likeliest, drawn to what is expected of any model.

    Args:
        scores: A row a label, a column for each of its votes, which count together as one.
        truths: Whether each elected what is right.
    """

    def unlikely(level_and_slope: FloatArray) -> float:
        level, slope = level_and_slope[0], np.exp(level_and_slope[1])
        chances = level + slope * scores
        misses = np.logaddexp(0, chances) - truths * chances
        apart = ((level - LEVEL) / LEVEL_SPREAD) ** 2 + (level_and_slope[1] / SLOPE_SPREAD) ** 2
        return float(misses.mean(axis=1).sum() + apart / 2)

    level, slope = scipy.optimize.minimize(unlikely, [LEVEL, 0.0], method="BFGS").x
    return float(level), float(np.exp(slope))
