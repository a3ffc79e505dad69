"""Equality of formulas, computed in other processes: how long one vote may compare, and whose turn it is.

A comparison gets a moment in the quick lane. One that is not done by then gets its time in the slow lane, and so do all
others of its vote from then on: nobody whose formulas are quick waits for one that is not. In a lane it is first come,
first served, and a vote compares one pair at a time, so that votes take turns.
"""

import os
import threading
import time
from collections import Counter
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from suffice.answers.brackets import structure
from suffice.answers.worker import SECONDS, TooSlowError, Worker

MOMENT = 0.25
"""Seconds of processor time for a comparison in the quick lane; those of common answers take a tenth of that."""

BUDGET = 8.0
"""Seconds that a vote may spend in the slow lane in all, waiting and the start of workers included."""

STRIKES = 2
"""An answer that was in so many comparisons that were too slow is compared as written from then on."""


class Lane:
    """Workers that do comparisons in the order in which they came; each is started when all others are busy."""

    def __init__(self, seconds: float, workers: int) -> None:
        self._seconds = seconds
        self._workers = workers
        self._own = threading.local()
        self._renew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self._threads = ThreadPoolExecutor(self._workers, "suffice-compare", initializer=self._equip)

    def _equip(self) -> None:
        self._own.worker = Worker("equal")

    def compare(self, a: str, b: str) -> "Future[bool | None]":
        """Whether two forms are equal; None where that takes too long to tell."""
        return self._threads.submit(self._compare, a, b)

    def _compare(self, a: str, b: str) -> bool | None:
        worker: Worker = self._own.worker
        try:
            return worker.equal(structure(a), structure(b), self._seconds)
        except TooSlowError:
            return None


QUICK = Lane(MOMENT, workers=2)
SLOW = Lane(SECONDS, workers=2)


@dataclass(frozen=True)
class Comparison:
    """Two forms that are to be compared now, and for how many seconds that may be waited for at most."""

    a: str
    b: str
    lane: Lane
    patience: float | None = None

    def begin(self) -> "Future[bool | None]":
        """Have it computed; None for what takes too long."""
        return self.lane.compare(self.a, self.b)


Comparing = Generator[Comparison, bool | None, bool]
"""Asks for comparisons, and is sent what they come to."""


class Purse:
    """The time that one vote has for comparing, and what it has learned of its answers."""

    def __init__(self) -> None:
        self._left = BUDGET
        self._was_slow = False
        self._strikes: Counter[str] = Counter()

    def same(self, a: str, b: str) -> Comparing:
        """Whether two forms are equal; those that are too slow to compare are not, as they are written differently."""
        if max(self._strikes[a], self._strikes[b]) >= STRIKES:
            return False
        if not self._was_slow:
            equal = yield Comparison(a, b, QUICK)
            if equal is not None:
                return equal
            self._was_slow = True
        if self._left <= 0:
            return False
        begun = time.monotonic()
        equal = yield Comparison(a, b, SLOW, self._left)
        self._left -= time.monotonic() - begun
        if equal is None:
            self._strikes.update((a, b))
        return bool(equal)
