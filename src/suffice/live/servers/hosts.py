"""Servers: what has been learned of each, how fast it is, and which one a question goes to."""

import json
import math
import random
import re
import threading
import time
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from sys import maxsize
from typing import Any

from suffice.live.servers.gate import Gate, Limiter
from suffice.live.signals import TOP

MOST_LEARNED = 1000  # things that are remembered of a server's models
FORGET_SECONDS = 600.0  # then what a server makes of `n` is tried out again
FORGET_ABSENT_SECONDS = 30.0  # and so is whether it has a model that it did not have

_SAID = {"messages", "input", "system", "instructions", "prompt", "model", "seed", "user", "metadata", "n"}
"""Fields of a question that don't make its kind."""

_OF_NUMBER = re.compile(r"\bn\b|choices|best_of|number of (completions|responses|samples)", re.IGNORECASE)
_OF_MORE = re.compile(r"greedy|temperature|sampling|beam|stream|logprob|seed|top_[pk]|tool|format", re.IGNORECASE)


TOPS = (TOP, 5, 0)
"""The number of likeliest tokens with log probabilities: the next one if a server refuses the one before."""


@dataclass(frozen=True)
class DrawRequest:
    """What is sent for every draw of one question."""

    fields: Mapping[str, Any]
    streamed: bool = False
    single: bool = False  # each draw is a request of its own
    signals: bool = False  # with log probabilities, if the server tells them

    @property
    def model(self) -> str:
        return str(self.fields.get("model"))

    @property
    def kind(self) -> str:
        """The model and how it is asked, whatever the question is."""
        how = {name: value for name, value in self.fields.items() if name not in _SAID}
        return f"{self.model} {hash(json.dumps(how, sort_keys=True, default=str))}"


def most_tokens(fields: Mapping[str, Any]) -> int | None:
    """Return the most tokens of a response, if a request says so.

    >>> most_tokens({"max_tokens": 1}), most_tokens({"max_tokens": -1})
    (1, None)
    """
    said = [fields.get(name) for name in ("max_tokens", "max_completion_tokens", "max_output_tokens")]
    return min((one for one in said if isinstance(one, int) and one > 0), default=None)


LATELY = 600.0  # seconds for which it counts what was seen
FEWEST_TOKENS = 16  # a shorter response tells more of the way there than of the server

MUCH_SLOWER = 2.0
"""A server is busy where a token takes so many times the least that one took lately.

Where 16 draws are in flight instead of 4, a vote takes six tenths of the tokens in a row: what takes twice as long for
each of them gains nothing.
"""

MOST_IDLE, BOLDNESS = 96, 2
"""A server with so many draws has something to do in any case; so many times what was seen is tried at once.

Who has only seen it busy does not know how fast it could be. At a simulated H200 four times saves no time over twice.
"""


class Pace:
    """The seconds of a token lately, by the number of draws under way; threads may share it."""

    def __init__(self) -> None:
        self.under_way = 0  # draws of votes
        self._lock = threading.Lock()
        self._seen: dict[int, tuple[float, float]] = {}  # by the bits of that number: the seconds, and when

    def add(self, draws: int) -> None:
        """Count draws that begin, or, if negative, end."""
        with self._lock:
            self.under_way += draws

    def saw(self, seconds: float, tokens: int, draws: int) -> None:
        """Learn from the seconds of a response while so many draws were under way."""
        if tokens < FEWEST_TOKENS:
            return
        now, size = time.monotonic(), draws.bit_length()
        with self._lock:
            before, when = self._seen.get(size, (0.0, -math.inf))
            known = before if now - when < LATELY else seconds / tokens
            self._seen[size] = 0.75 * known + 0.25 * seconds / tokens, now

    @property
    def most_idle(self) -> int:
        """The number of draws under way before each gets much slower; 0 if it is not known."""
        seen = {1 << (size - 1): seconds for size, seconds in self._lately().items() if size}
        limit = MUCH_SLOWER * min(seen.values(), default=0.0)
        slow = [draws - 1 for draws, seconds in seen.items() if seconds > limit]
        return min([*slow, BOLDNESS * max(seen, default=0), MOST_IDLE])

    def tokens_in(self, seconds: float, draws: int) -> int:
        """Estimate the tokens that so many draws have generated in these seconds."""
        size, seen = self.under_way.bit_length(), self._lately()
        nearest = min(seen, key=lambda one: abs(one - size), default=None)
        return 0 if nearest is None else round(draws * seconds / seen[nearest])

    def _lately(self) -> dict[int, float]:
        now = time.monotonic()
        with self._lock:
            return {size: seconds for size, (seconds, when) in self._seen.items() if now - when < LATELY}


@dataclass
class ServerCapabilities:
    """What has been learned of a server, for all who ask it."""

    takes_stream_options: bool = True
    pace: Pace = field(default_factory=Pace)
    counts_first: bool | None = None  # the tokens of the first of several responses alone, if that is known
    _known: dict[tuple[str, str], tuple[Any, float]] = field(default_factory=dict)  # the value, when it expires
    _told: set[str] = field(default_factory=set)

    def most_at_once(self, request: DrawRequest) -> int:
        most: int = min(self._recall("most", name, maxsize) for name in (request.model, request.kind))
        return most

    def learn_most(self, request: DrawRequest, most: int, refusal: str = "") -> None:
        """Remember the most responses of one request to the model, or of its kind if a refusal is not about n alone."""
        of_number = not refusal or (_OF_NUMBER.search(refusal) and not _OF_MORE.search(refusal))
        name = request.model if of_number else request.kind
        self._remember("most", name, max(1, min(most, self._recall("most", name, maxsize))))

    def top_logprobs(self, request: DrawRequest) -> int | None:
        """Return the number of likeliest tokens that it tells; None if it has no log probabilities."""
        top: int | None = self._recall("top_logprobs", _of_signals(request), TOP)
        return top

    def learn_top(self, request: DrawRequest, top: int | None) -> None:
        self._remember("top_logprobs", _of_signals(request), top)

    def warn_once(self, model: str, message: str) -> None:
        if model not in self._told and len(self._told) < MOST_LEARNED:
            self._told.add(model)
            warnings.warn(message, stacklevel=2)

    def lack(self, model: str) -> None:
        self._remember("absent", model, True)

    def lacks(self, model: str | None) -> bool:
        return bool(self._recall("absent", model or "", False))

    def _recall(self, topic: str, name: str, default: Any) -> Any:
        known, expires = self._known.get((topic, name), (default, 0.0))
        return known if expires > time.monotonic() else default

    def _remember(self, topic: str, name: str, value: Any) -> None:
        if len(self._known) >= MOST_LEARNED:
            self._known.clear()
        seconds = FORGET_ABSENT_SECONDS if topic == "absent" else FORGET_SECONDS
        self._known[topic, name] = value, time.monotonic() + seconds


def _of_signals(request: DrawRequest) -> str:
    """Name the requests that a refusal is about: some refuse log probabilities with tools in a stream."""
    return f"{request.model} {request.streamed} {bool(request.fields.get('tools'))}"


FAILURES = 3  # requests in a row that must fail before a server is set aside; one where nobody listens there
ASIDE_SECONDS, LONGEST_ASIDE_SECONDS = 0.5, 5.0  # at first, and at most: it doubles until the server answers
FIRST_TRUST = 0.05  # the part of its weight that a server has when it returns; every answer doubles that
MOST_GATES = 1000


@dataclass(eq=False)
class Host:
    """One server as all questions see it: its load, its health and its gates."""

    name: str = ""
    capabilities: ServerCapabilities = field(default_factory=ServerCapabilities)
    secret: str = ""
    weight: float = 1.0
    models: Collection[str] = ()
    limiter: Limiter = field(default_factory=lambda: Limiter(maxsize))
    probed: bool = False  # somebody tries at `probe_due` whether it answers again, and nobody before
    probe_due: float = inf
    load: int = 0  # draws in flight there, or about to be
    chosen: int = 0  # questions that went there
    _gates: dict[str, Gate] = field(default_factory=dict)
    _failures: int = 0
    _aside_until: float = 0.0
    _aside_seconds: float = ASIDE_SECONDS
    _trust: float = 1.0

    def gate(self, key: str = "") -> Gate:
        if key not in self._gates:
            if len(self._gates) >= MOST_GATES:
                self._gates.clear()
            self._gates[key] = Gate()
        return self._gates[key]

    @property
    def is_aside(self) -> bool:
        return time.monotonic() < self._aside_until

    def serves(self, model: str | None) -> bool:
        return not self.models or model is None or model in self.models

    @property
    def burden(self) -> tuple[float, float]:
        """Its load for its weight, and then the questions that it had."""
        return self.demand / (self.weight * self._trust), self.chosen / self.weight

    @property
    def demand(self) -> int:
        """Draws of all votes and clients that are in flight there, or about to be."""
        return max(self.load, self.capabilities.pace.under_way)

    def answer(self) -> None:
        self._failures = 0
        self._aside_until, self.probe_due = 0.0, inf
        self._trust = min(1.0, 2 * self._trust)
        self._aside_seconds = ASIDE_SECONDS

    def fail(self, *, dead: bool = False) -> None:
        """Count a failure; one of a `dead` server counts for all."""
        self._failures += FAILURES if dead else 1
        if self._failures >= FAILURES and not self.is_aside:
            self.set_aside()

    def take_back(self) -> None:
        """Ask it again; the first failure sets it aside again."""
        self._failures = FAILURES - 1
        self._aside_until, self.probe_due = 0.0, inf

    def set_aside(self) -> None:
        seconds = self._aside_seconds * random.uniform(0.75, 1.25)  # noqa: S311
        self._aside_seconds = min(LONGEST_ASIDE_SECONDS, 2 * self._aside_seconds)
        self.probe_due = time.monotonic() + seconds
        self._aside_until = inf if self.probed else self.probe_due
        self._failures = FAILURES - 1
        self._trust = FIRST_TRUST


class Fleet:
    """Servers; each question goes to one, and stays there as long as that answers."""

    def __init__(self, hosts: Sequence[Host]) -> None:
        self.hosts = tuple(hosts)

    def choose(self, model: str | None = None, key: str = "") -> Host:
        """Return the server for a new question, the least burdened that can answer."""
        ready = self._ready(model, key)
        host = min(ready or self._fitting(model), key=lambda host: host.burden)
        host.chosen += 1
        return host

    def other(self, model: str | None, key: str, avoid: Collection[Host]) -> Host | None:
        """Return another server for a question that can't stay, if one is in a better state."""
        return min(self._ready(model, key, avoid), key=lambda host: host.burden, default=None)

    def _fitting(self, model: str | None) -> Sequence[Host]:
        return [host for host in self.hosts if host.serves(model)] or self.hosts

    def _ready(self, model: str | None, key: str, avoid: Collection[Host] = ()) -> Sequence[Host]:
        """Return those that can answer now, or else after a pause."""
        fitting = [host for host in self._fitting(model) if host not in avoid]
        well = [host for host in fitting if not host.is_aside and not host.capabilities.lacks(model)]
        return [host for host in well if not host.gate(key).pause] or well
