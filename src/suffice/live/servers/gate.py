"""The gate before a server: which request may start now, the oldest question's first."""

import asyncio
import time
from bisect import insort
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count
from math import inf

from suffice.live.servers.retry import PausedError, backoff

FIRST, MORE = 8, 0.25  # requests at once before a server has answered any, and more for each answer
STAGGER = 0.005  # seconds between the starts of others: a 429 arrives before all are sent
LONGEST_PAUSE = 3600.0  # seconds

TOO_MANY, MOST = 0.05, 2 / 3
"""Shares of refusals: fewer than the one are mishaps, and a pace that was taken slows down beyond the other alone."""
REMEMBERED = 32  # replies that this share is taken over, more or less
IN_A_ROW = 3
"""Refusals after which all wait: one that was taken between them shows chance. If none was taken yet, one is enough."""
SLOWEST, FASTEST = 0.2, 1000  # requests a second: the pace is never slower, and is none beyond


class Gate:
    """Lets requests through to a server; all questions under the same limits share it.

    A few refusals in a row pause all of them, for as long as the server says. Where too many are refused, requests then
    start at four fifths of the pace that was taken, which grows until there are refusals again.
    """

    def __init__(self) -> None:
        self._in_flight = 0
        self._window = float(FIRST)
        self._pace = self._known_pace = inf
        self._paced_at = 0.0
        self._paused_until = 0.0
        self._last_start = -inf
        self._refused_in_a_row = 0
        self._refused_share = 0.0
        self._last_refused = -inf  # when the latest of them started
        self._taken: deque[float] = deque(maxlen=FASTEST)  # when those started that were not refused, so far
        self._order = count()
        self._waiting: list[tuple[float, int, asyncio.Event]] = []  # sorted

    @property
    def pause(self) -> float:
        """The seconds that the server wants a pause for."""
        return max(0.0, self._paused_until - time.monotonic())

    async def enter(self, age: float, ends: float = inf, max_pause: float = inf) -> float:
        """Wait for one's turn, a smaller `age` first, and return when it came; PausedError if a pause is too long."""
        entry = (age, next(self._order), asyncio.Event())
        insort(self._waiting, entry)
        try:
            while True:
                now = time.monotonic()
                if self._paused_until - now > max(0.0, min(max_pause, ends - now)):
                    raise PausedError(self._paused_until - now)
                spacing = STAGGER if self._in_flight >= self._window else 0.0
                opens = max(self._paused_until, self._last_start + max(spacing, 1 / self._pace))
                is_first = self._waiting[0] is entry
                if is_first and opens <= now:
                    break
                entry[2].clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(opens - now if is_first else None):
                        await entry[2].wait()
        finally:
            self._waiting.remove(entry)
            self._wake(self._waiting[:1])
        self._last_start = now
        self._taken.append(now)
        self._in_flight += 1
        return now

    def leave(self) -> None:
        self._in_flight -= 1
        self._wake(self._waiting[:1])

    def grant(self) -> None:
        now = time.monotonic()
        self._refused_share -= self._refused_share / REMEMBERED
        self._window += MORE
        if self._pace < inf:
            growth = 1.0 if self._pace < self._known_pace else 0.1
            self._pace += max(0.5, growth * self._pace) * min(1.0, now - self._paced_at)
            self._paced_at = now
            if self._pace > FASTEST:
                self._pace = inf

    def refuse(self, started: float, asked: float = 0.0) -> bool:
        """Count a refused request that started then, and the pause it was told; return whether all wait now."""
        now = time.monotonic()
        self._refused_share += (1.0 - self._refused_share) / REMEMBERED
        if started in self._taken:
            self._taken.remove(started)
        sure = started - (now - started)  # whoever is under way for twice as long was taken
        if any(self._last_refused < other < sure for other in self._taken):
            self._refused_in_a_row = 0
        self._last_refused = max(self._last_refused, started)
        news = now >= self._paused_until  # what was sent before a pause tells nothing that the pause does not
        self._refused_in_a_row += news
        if self._refused_share > TOO_MANY:
            self._slow_down(now, news)
        pauses, more = divmod(self._refused_in_a_row, IN_A_ROW if self._taken else 1)
        if more == 0:
            wait = asked + (backoff(pauses - 1) if news else 0.0)
            self._paused_until = max(self._paused_until, now + min(wait, LONGEST_PAUSE))
        self._wake(self._waiting)
        return news and more == 0

    def _slow_down(self, now: float, news: bool) -> None:
        # Those that were sent before a pause and are refused now show how few were taken then.
        if not news or self._pace == inf or self._pace > 1.25 * self._known_pace or self._refused_share > MOST:
            taken = sum(moment > now - 1.0 for moment in self._taken)
            if not (taken or self._in_flight or self._waiting):
                return  # one alone backs off by itself
            self._pace = max(SLOWEST, 0.8 * taken)
            self._known_pace = self._pace if taken else inf
        self._paced_at = now

    @staticmethod
    def _wake(entries: Sequence[tuple[float, int, asyncio.Event]]) -> None:
        for _, _, event in entries:
            event.set()


class Limiter:
    """A semaphore for several draws at a time, first come first served."""

    def __init__(self, limit: int) -> None:
        self.limit = self._free = limit
        self._turn = asyncio.Lock()
        self._freed = asyncio.Event()

    @asynccontextmanager
    async def hold(self, draws: int) -> AsyncIterator[None]:
        taken = min(draws, self.limit)
        if taken:
            async with self._turn:
                while self._free < taken:
                    self._freed.clear()
                    await self._freed.wait()
                self._free -= taken
        try:
            yield
        finally:
            self._free += taken
            self._freed.set()
