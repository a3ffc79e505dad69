"""Learned weights: several signals in one election, and the file with its card that they are kept in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from suffice.controllers.files import BROKEN, read_tensors, write_tensors
from suffice.elections.election import Election, standardised
from suffice.elections.registry import registry
from suffice.elections.weights import exponential, signal_of
from suffice.errors import OptionError
from suffice.paths import is_there
from suffice.tally import FloatArray

FORMAT = 1
KIND = "weights"


@dataclass(frozen=True)
class LearnedWeights(Election):
    """exp(Σ strength × z) over several signals, each z as in `Weighted`; the card says what they were learned from.

    >>> LearnedWeights(("length",), (-0.4,)).weights({}, np.array([30.0, 10.0])).round(2)
    array([0.67, 1.49])
    """

    signals: tuple[str, ...] = ()
    strengths: tuple[float, ...] = ()
    card: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def weights(self, signals: Mapping[str, FloatArray], tokens: FloatArray) -> FloatArray:
        """1 for a response that is like the others."""
        scores = np.zeros(np.shape(tokens))
        for name, strength in zip(self.signals, self.strengths, strict=True):
            scores = scores + strength * standardised(signal_of(name, signals, tokens))
        return exponential(scores)


def save_weights(weights: LearnedWeights, path: str | Path) -> None:
    """Write weights and their card.

    >>> import tempfile
    >>> from suffice.elections import get_election
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_weights(LearnedWeights(("logprob", "length"), (0.5, -0.1)), f"{folder}/mine.safetensors")
    ...     print(get_election(f"file:{folder}/mine.safetensors"))
    LearnedWeights(signals=('logprob', 'length'), strengths=(0.5, -0.1))
    """
    card = {**weights.card, "kind": KIND, "format": FORMAT, "signals": list(weights.signals)}
    write_tensors(path, {"strengths": np.array(weights.strengths, float)}, card)


def load_weights(path: str | Path) -> LearnedWeights:
    """Read a file of weights.

    >>> load_weights("no-such-file.safetensors")
    Traceback (most recent call last):
    ...
    suffice.errors.OptionError: no-such-file.safetensors: there is no such file of weights
    """
    if not is_there(Path(path)):
        raise OptionError(f"{path}: there is no such file of weights")
    try:
        tensors, card = read_tensors(path)
        if card["kind"] != KIND:
            raise OptionError(f"{path}: this file holds a controller, not weights; make those with suffice weigh")
        if card["format"] > FORMAT:
            raise OptionError(f"{path}: these weights have format {card['format']}, newer than this suffice knows")
        signals, strengths = tuple(map(str, card["signals"])), tensors["strengths"]
        if strengths.shape != (len(signals),) or not np.isfinite(strengths).all():
            raise ValueError("a strength for each signal")
        return LearnedWeights(signals, tuple(strengths.tolist()), card)
    except BROKEN:
        raise OptionError(f"{path}: this is not a whole file of weights; make one with suffice weigh") from None


registry.register("file", rest="PATH")(load_weights)
