"""Signals: what the log probabilities of a response come to, in a few numbers."""

import json
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

TOP = 20  # likeliest tokens that are asked for at each place, where the server tells as many
NAMES = ("logprob", "confidence", "tail", "lowest")
WINDOW = 32  # tokens in a row over which confidence is taken for `tail` and `lowest`
UNKNOWN = -9999.0  # as OpenAI and others tell a log probability that is not known, or minus infinity


class Token(NamedTuple):
    """What is kept of a token while its reply is read."""

    logprob: float | None
    confidence: float | None  # minus the mean log probability of the likeliest tokens in its place


def load(data: bytes) -> Any:
    """Read JSON whose tokens shrink at once: their list may be a hundred times as long as the text."""
    return json.loads(data, object_hook=_shrunk)


def _shrunk(read: dict[str, Any]) -> Any:
    if "logprob" not in read or "token" not in read:
        return read
    likeliest = read.get("top_logprobs")
    known = [one.logprob for one in likeliest if isinstance(one, Token)] if isinstance(likeliest, list) else []
    top = sorted((one for one in known if one is not None), reverse=True)[:TOP]
    return Token(_known(read["logprob"]), -sum(top) / len(top) if top else None)


def _known(logprob: Any) -> float | None:
    number = isinstance(logprob, int | float) and not isinstance(logprob, bool)
    return float(logprob) if number and math.isfinite(logprob) and logprob > UNKNOWN else None


def silenced(data: bytes) -> Any:
    """Read a reply, or an event, as if nobody had asked for log probabilities.

    >>> silenced(b'{"choices": [{"index": 0, "logprobs": {"content": [{"token": "7", "logprob": -0.5}]}}]}')
    {'choices': [{'index': 0, 'logprobs': None}]}
    """
    return json.loads(data, object_hook=_silent)


def _silent(read: dict[str, Any]) -> dict[str, Any]:
    if isinstance(read.get("logprobs"), dict | list):
        read["logprobs"] = None if isinstance(read["logprobs"], dict) else []
    if isinstance(read.get("top_logprobs"), int):  # what Responses was asked for, as it repeats it
        read["top_logprobs"] = 0
    return read


def tokens_in(told: Any) -> list[Token]:
    """Return the tokens of a list that may be anything."""
    return [one for one in told if isinstance(one, Token)] if isinstance(told, list) else []


def signals_of(tokens: Sequence[Token]) -> dict[str, float]:
    """The signals of a response, as far as its tokens tell them.

    `logprob` is the mean log probability of its tokens, `confidence` the mean of minus that of the likeliest in each
    place, `tail` the same over the last 32 tokens and `lowest` the smallest over any 32 in a row.
    """
    signals = {}
    logprobs = [token.logprob for token in tokens if token.logprob is not None]
    if logprobs:
        signals["logprob"] = np.mean(logprobs)
    sure = np.array([token.confidence for token in tokens if token.confidence is not None])
    if len(sure):
        windows = np.lib.stride_tricks.sliding_window_view(sure, min(WINDOW, len(sure)))
        signals |= {"confidence": sure.mean(), "tail": windows[-1].mean(), "lowest": windows.mean(axis=1).min()}
    return {name: round(float(value), 6) for name, value in signals.items()}
