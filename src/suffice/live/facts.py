"""What has been learned of a server on the way; it is forgotten after a while, for servers change."""

import json
import re
import sys
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from suffice.live.signals import TOP

MOST_LEARNED = 1000
"""So many things are remembered of a server's models."""

FORGET_SECONDS = 600.0
"""What a server makes of `n` is tried out again after so long."""

FORGET_ABSENT_SECONDS = 30.0
"""And so is whether it has a model that it did not have."""

_SAID = {"messages", "input", "system", "instructions", "prompt", "model", "seed", "user", "metadata", "n"}
"""Fields that make a question what it is, and not the kind that it is of."""

_OF_NUMBER = re.compile(r"\bn\b|choices|best_of|number of (completions|responses|samples)", re.IGNORECASE)
_OF_MORE = re.compile(r"greedy|temperature|sampling|beam|stream|logprob|seed|top_[pk]|tool|format", re.IGNORECASE)


TOPS = (TOP, 5, 0)
"""Of how many likeliest tokens log probabilities are asked for, one number after the other where a server refuses."""


@dataclass(frozen=True)
class Asking:
    """What is sent for every draw of one question: the messages, the model, and whatever else the caller gave."""

    fields: Mapping[str, Any]
    streamed: bool = False
    """Whether responses are asked for as streams, which can be ended one by one."""
    single: bool = False
    """Whether each draw is a request of its own."""
    signals: bool = False
    """Whether log probabilities are asked for, where the server tells them."""

    @property
    def model(self) -> str:
        """The model that is asked."""
        return str(self.fields.get("model"))

    @property
    def kind(self) -> str:
        """The model, and how it is asked, whatever the question is."""
        how = {name: value for name, value in self.fields.items() if name not in _SAID}
        return f"{self.model} {hash(json.dumps(how, sort_keys=True, default=str))}"


class Facts:
    """What has been learned of a server; whoever asks it shares them."""

    def __init__(self) -> None:
        self.refused: set[str] = set()
        """Fields of a request that it does not know."""
        self.counts_first: bool | None = None
        """Whether it tells the tokens of the first of several responses only; None as long as that is not known."""
        self._most: dict[str, tuple[int, float]] = {}
        self._most_of_kind: dict[str, tuple[int, float]] = {}
        self._absent: dict[str, float] = {}
        self._tops: dict[str, tuple[int | None, float]] = {}
        self._told: set[str] = set()

    def most_at_once(self, asking: Asking) -> int:
        """The most responses that it gives for one such request."""
        most = _known(self._most, asking.model)
        return min(most, _known(self._most_of_kind, asking.kind)) if self._most_of_kind else most

    def gave(self, asking: Asking, most: int) -> None:
        """Remember that it gave no more than this for one request, whatever it was asked for."""
        _learn(self._most, asking.model, most)

    def took(self, asking: Asking, most: int, words: str) -> None:
        """Remember that it took a request for so many after it had refused one for more, in these words.

        A refusal that is not about the number alone, as of several responses that would all be the same, says nothing
        of requests of another kind.
        """
        of_number = _OF_NUMBER.search(words) and not _OF_MORE.search(words)
        _learn(*(self._most, asking.model) if of_number else (self._most_of_kind, asking.kind), most)

    def top_logprobs(self, asking: Asking) -> int | None:
        """Of how many likeliest tokens it tells log probabilities; None where it tells none at all."""
        top, expires = self._tops.get(_of_signals(asking), (TOP, 0.0))
        return top if expires > time.monotonic() else TOP

    def took_top(self, asking: Asking, top: int | None) -> None:
        """Remember that it took a request for so many after it had refused one for more; None for none at all."""
        if len(self._tops) >= MOST_LEARNED:
            self._tops.clear()
        self._tops[_of_signals(asking)] = top, time.monotonic() + FORGET_SECONDS

    def warn_once(self, model: str, message: str) -> None:
        """Warn of what a model at this server does not do: one warning a model."""
        if model not in self._told and len(self._told) < MOST_LEARNED:
            self._told.add(model)
            warnings.warn(message, stacklevel=2)

    def lack(self, model: str) -> None:
        """Remember that it does not have a model."""
        if len(self._absent) >= MOST_LEARNED:
            self._absent.clear()
        self._absent[model] = time.monotonic() + FORGET_ABSENT_SECONDS

    def lacks(self, model: str | None) -> bool:
        """Whether it did not have this model a moment ago."""
        return self._absent.get(model or "", 0.0) > time.monotonic()


def _of_signals(asking: Asking) -> str:
    """What a refusal of log probabilities is about: some refuse them with tools in a stream alone."""
    return f"{asking.model} {asking.streamed} {bool(asking.fields.get('tools'))}"


def _known(most: dict[str, tuple[int, float]], key: str) -> int:
    known, expires = most.get(key, (sys.maxsize, 0.0))
    return known if expires > time.monotonic() else sys.maxsize


def _learn(known: dict[str, tuple[int, float]], key: str, most: int) -> None:
    if len(known) >= MOST_LEARNED:
        known.clear()
    known[key] = max(1, min(most, _known(known, key))), time.monotonic() + FORGET_SECONDS
