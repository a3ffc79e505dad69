"""Several servers that answer alike: which of them a question goes to, and which are set aside for now."""

import random
import time
from collections.abc import Collection, Sequence
from math import inf
from sys import maxsize

from suffice.live.facts import Facts
from suffice.live.gate import Gate
from suffice.live.limiter import Limiter

FAILURES = 3
"""So many requests in a row must fail before a server is set aside; one where nobody listens there."""

ASIDE_SECONDS, LONGEST_ASIDE_SECONDS = 0.5, 5.0
"""How long a server is set aside at first, and at most; it doubles until it answers."""

FIRST_TRUST = 0.05
"""The part of its weight that a server has when it returns; every answer of it doubles that."""

MOST_GATES = 1000


class Host:
    """One server as all questions see it: its load, its health, its gate, and what has been learned of it."""

    def __init__(
        self,
        name: str = "",
        *,
        facts: Facts | None = None,
        secret: str = "",
        weight: float = 1.0,
        models: Collection[str] = (),
        most_draws: int = maxsize,
        probed: bool = False,
    ) -> None:
        self.name = name
        self.facts = facts or Facts()
        self.secret = secret
        self.weight = weight
        self.models = models
        self.limiter = Limiter(most_draws)
        self.load = 0
        """Draws that are in flight there, or about to be."""
        self.chosen = 0
        """How many questions went there."""
        self.probe_due = inf
        """When somebody should try whether it answers again; nobody else does where it is `probed`."""
        self._probed = probed
        self._gates: dict[str, Gate] = {}
        self._failures = 0
        self._aside_until = 0.0
        self._aside_seconds = ASIDE_SECONDS
        self._trust = 1.0

    def gate(self, key: str = "") -> Gate:
        """The gate of those who present themselves there by the same key."""
        if len(self._gates) >= MOST_GATES and key not in self._gates:
            self._gates.clear()
        return self._gates.setdefault(key, Gate())

    @property
    def is_aside(self) -> bool:
        """Whether it is set aside."""
        return time.monotonic() < self._aside_until

    def serves(self, model: str | None) -> bool:
        """Whether it is there for this model."""
        return not self.models or model is None or model in self.models

    @property
    def burden(self) -> tuple[float, float]:
        """Its load for its weight, and of those whose load is the same, what it had so far."""
        return self.load / (self.weight * self._trust), self.chosen / self.weight

    def answer(self) -> None:
        """Tell that it answered as it should."""
        self._failures = 0
        self._aside_until, self.probe_due = 0.0, inf
        self._trust = min(1.0, 2 * self._trust)
        self._aside_seconds = ASIDE_SECONDS

    def fail(self, *, dead: bool = False) -> None:
        """Tell that it failed; `dead` where there is no hope for the next request either."""
        self._failures += FAILURES if dead else 1
        if self._failures >= FAILURES and not self.is_aside:
            self._set_aside()

    def take_back(self) -> None:
        """Tell that it seems to answer again; the first failure sets it aside again."""
        self._failures = FAILURES - 1
        self._aside_until, self.probe_due = 0.0, inf

    def stay_aside(self) -> None:
        """Tell that it does not answer yet."""
        self._set_aside()

    def _set_aside(self) -> None:
        seconds = self._aside_seconds * random.uniform(0.75, 1.25)  # noqa: S311
        self._aside_seconds = min(LONGEST_ASIDE_SECONDS, 2 * self._aside_seconds)
        self.probe_due = time.monotonic() + seconds
        self._aside_until = inf if self._probed else self.probe_due
        self._failures = FAILURES - 1
        self._trust = FIRST_TRUST


class Fleet:
    """Servers of which each question goes to one, and stays there as long as that answers."""

    def __init__(self, hosts: Sequence[Host]) -> None:
        self.hosts = tuple(hosts)

    def choose(self, model: str | None = None, key: str = "") -> Host:
        """The server for a new question: the least burdened of those that can answer."""
        ready = self._ready(model, key)
        host = min(ready or self._fitting(model), key=lambda host: host.burden)
        host.chosen += 1
        return host

    def other(self, model: str | None, key: str, avoid: Collection[Host]) -> Host | None:
        """Another server, for a question that can't stay where it is; None where none is in a better state."""
        return min(self._ready(model, key, avoid), key=lambda host: host.burden, default=None)

    def _fitting(self, model: str | None) -> Sequence[Host]:
        return [host for host in self.hosts if host.serves(model)] or self.hosts

    def _ready(self, model: str | None, key: str, avoid: Collection[Host] = ()) -> Sequence[Host]:
        """Those that can answer, now if there are any, or after a pause."""
        fitting = [host for host in self._fitting(model) if host not in avoid]
        well = [host for host in fitting if not host.is_aside and not host.facts.lacks(model)]
        return [host for host in well if not host.gate(key).pause] or well
