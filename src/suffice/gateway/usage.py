"""Who asks, by key, and what each has taken: limits are checked in memory, and a thread keeps them on disk."""

import hashlib
import sqlite3
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, date, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from suffice.errors import OptionError
from suffice.gateway import metrics
from suffice.gateway.errors import GatewayError
from suffice.gateway.keys import Key, read_keys
from suffice.gateway.settings import Settings
from suffice.gateway.shared import Board
from suffice.gateway.store import Counts, Store
from suffice.gateway.windows import WIDTH, Window

LAG_SECONDS = 1.0
"""So long it takes at most until another worker, and the disk, know what was counted here."""

SETTLE_SECONDS = 0.05
"""A file that has not changed for so long is whole, also where it was not replaced at once."""

DAY = 86400

Waiting = dict[str, dict[int, Counts]]
"""Counts that are not on disk yet, by name and day."""


class Spent(NamedTuple):
    """What of the limits of a day and a month is used."""

    tokens: int
    cost: float


class Usage:
    """The keys in force, and the counters of each."""

    def __init__(self, settings: Settings, board: Board | None = None, store: Store | None = None) -> None:
        assert settings.keys  # noqa: S101
        self._path = Path(settings.keys)
        self._priced = bool(settings.prices)
        self._board = board
        self._store = store or Store(settings.usage_file)
        self._seen = _look(self._path)
        self._keys = self._read()
        self._windows: dict[str, Window] = {}
        self._known: dict[str, tuple[int, float]] = {}
        self._known_day = 0
        self._elsewhere: dict[str, int] = {}
        """The requests of the last minute on other machines."""
        self._pending: Waiting = {}
        self._leaving: Waiting = {}
        """What is being written."""
        self._counting, self._storing = threading.Lock(), threading.Lock()
        self._wake, self._reload_asked, self._ending = threading.Event(), False, False
        self._troubled = False
        self._keeper = threading.Thread(target=self._keep, name="suffice-usage", daemon=True)

    def start(self) -> None:
        """Learn what was counted before, and begin to keep it."""
        now = time.time()
        with self._storing:
            for name, second, count in self._store.minute():
                if self._board:
                    with self._board.lock():
                        self._window(name).recall(second, count, now)
                else:
                    self._window(name).recall(second, count, now)
        self.flush()
        self._keeper.start()

    def stop(self) -> None:
        """Write what is left."""
        self._ending = True
        self._wake.set()
        self._keeper.join()
        with self._storing:
            self._store.close()

    def reload(self) -> None:
        """Read the file of keys again, soon."""
        self._reload_asked = True
        self._wake.set()

    def who(self, given: Iterable[str]) -> Key | None:
        """The key that is among those given. It is looked for by its digest, whose timing tells nothing of the key."""
        digests = [hashlib.sha256(one.encode("utf-8", "surrogateescape")).hexdigest() for one in given if one]
        return next((self._keys[digest] for digest in digests if digest in self._keys), None)

    def admit(self, key: Key, *, spends: bool) -> None:
        """Count a request of a key, or refuse it; where it spends nothing, what was spent does not matter."""
        now = time.time()
        limits = key.limits
        spent = self.spent(key.name, now) if spends and (limits.tokens_per_day or limits.money_per_month) else None
        if spent and limits.tokens_per_day and spent.tokens >= limits.tokens_per_day:
            most = f"{limits.tokens_per_day} tokens a day, and has used {spent.tokens}"
            self._refuse(key, "tokens_per_day", most, _tomorrow(now), now)
        if spent and limits.money_per_month and spent.cost >= limits.money_per_month:
            most = f"{limits.money_per_month:g} a month, and has spent {spent.cost:.4f}"
            self._refuse(key, "money_per_month", most, _next_month(now), now)
        if limits.requests_per_minute:
            wait = self._take(key.name, limits.requests_per_minute, now)
            if wait:
                most = f"{limits.requests_per_minute} requests a minute"
                self._refuse(key, "requests_per_minute", most, now + wait, now)

    def _refuse(self, key: Key, limit: str, most: str, until: float, now: float) -> None:
        metrics.KEY_REFUSED.labels(key.name, limit).inc()
        seconds = max(1, int(until - now + 0.999))
        at = datetime.fromtimestamp(until, UTC).strftime("%Y-%m-%d %H:%M:%S")
        message = f"this key may take {most}: come back in {seconds} seconds, at {at} UTC"
        raise GatewayError(
            429, message, kind="rate_limit_error", param=limit, code="rate_limit_exceeded",
            headers={"retry-after": str(seconds)},
        )  # fmt: skip

    def _take(self, name: str, most: int, now: float) -> int:
        most -= self._elsewhere.get(name, 0)
        if self._board:
            with self._board.lock():
                return self._window(name).take(most, now)
        return self._window(name).take(most, now)

    def _window(self, name: str) -> Window:
        if name not in self._windows:
            shared = self._board.window(name, WIDTH) if self._board else None
            self._windows[name] = Window(shared or memoryview(bytearray(8 * WIDTH)).cast("q"))
        return self._windows[name]

    def add(self, name: str, counts: Counts) -> None:
        """Count what a request took."""
        with self._counting:
            _add(self._pending, name, int(time.time() // DAY), counts)

    def spent(self, name: str, now: float) -> Spent:
        """What a key has used of its day and its month."""
        day = int(now // DAY)
        month = month_of(day)
        with self._counting:
            tokens, cost = self._known.get(name, (0, 0.0))
            tokens = tokens if self._known_day == day else 0
            cost = cost if self._known_day >= month else 0.0
            for waiting in (self._pending, self._leaving):
                for when, counts in waiting.get(name, {}).items():
                    tokens += counts.tokens if when == day else 0
                    cost += counts.cost if when >= month else 0.0
        return Spent(tokens, cost)

    def flush(self) -> None:
        """Write what was counted, and read what all have counted."""
        now = time.time()
        day = int(now // DAY)
        with self._storing:
            with self._counting:
                self._leaving, self._pending = self._pending, {}
            try:
                self._elsewhere = self._store.elsewhere(lambda: self._minute(list(self._windows)), now)
                if self._leaving:
                    self._store.add(self._leaving, self._minute(self._leaving.keys() & self._windows.keys()), now)
                known = self._store.spent(day, month_of(day))
            except (sqlite3.Error, OSError) as error:
                self._elsewhere = {}  # what is not renewed would never be over
                self._keep_pending()
                self._complain(f"the usage of keys can't be kept on disk, and is counted in memory: {error}")
                return
            with self._counting:
                self._known, self._known_day, self._leaving = known, day, {}
            self._troubled = False

    def _minute(self, names: Iterable[str]) -> list[tuple[str, int, int]]:
        """The requests of the last minute: name, second, number."""
        return [(name, *bucket) for name in names for bucket in self._windows[name].buckets()]

    def _keep_pending(self) -> None:
        with self._counting:
            for name, days in self._leaving.items():
                for day, counts in days.items():
                    _add(self._pending, name, day, counts)
            self._leaving = {}

    def _complain(self, sentence: str) -> None:
        if not self._troubled:
            print(f"suffice: {sentence}", file=sys.stderr, flush=True)
        self._troubled = True

    def _keep(self) -> None:
        while not self._ending:
            self._wake.wait(LAG_SECONDS)
            self._wake.clear()
            self._look_again()
            self.flush()

    def _look_again(self) -> None:
        """Take new keys in force where the file has changed; a broken file changes nothing."""
        seen = _look(self._path)
        if seen == self._seen and not self._reload_asked:
            return
        time.sleep(SETTLE_SECONDS)
        settled = _look(self._path)
        if settled != seen or settled[1:2] == (0,):  # somebody is still writing
            if settled != seen and not self._ending:
                self._wake.set()
            return
        self._seen, self._reload_asked = seen, False
        try:
            self._keys = self._read()
        except OptionError as error:
            metrics.KEY_RELOADS.labels("refused").inc()
            print(f"suffice: {error}; the old keys stay in force", file=sys.stderr, flush=True)
        else:
            metrics.KEY_RELOADS.labels("taken").inc()

    def _read(self) -> Mapping[str, Key]:
        keys = read_keys(self._path)
        limited = next((key.name for key in keys if key.limits.money_per_month), None)
        if limited and not self._priced:
            raise OptionError(f"{self._path}: keys.{limited} has money_per_month, and there are no prices")
        return {key.sha256: key for key in keys}

    def told(self) -> dict[str, Any]:
        """The usage of all keys, for the operator."""
        self.flush()
        now = time.time()
        with self._storing:
            since, totals = self._store.since(), self._store.totals()
        keys = {key.name: key for key in self._keys.values()}
        names = [*keys, *sorted(totals.keys() - keys.keys())]
        told = [self._told(name, keys.get(name), totals.get(name, Counts()), now) for name in names]
        return {"since": round(since, 3), "lag_seconds": LAG_SECONDS, "keys": told}

    def _told(self, name: str, key: Key | None, counts: Counts, now: float) -> dict[str, Any]:
        money = {
            "cost": round(counts.cost, 9),
            "cost_full": round(counts.cost_full, 9),
            "cost_saved": round(counts.cost_full - counts.cost, 9),
        }
        spent = self.spent(name, now)
        used = {
            "requests_per_minute": self._elsewhere.get(name, 0)
            + (self._windows[name].count(now) if name in self._windows else 0),
            "tokens_per_day": spent.tokens,
            "money_per_month": round(spent.cost, 9),
        }
        return {
            "name": name,
            "operator": bool(key and key.operator),
            "removed": key is None,
            **asdict(counts),
            "tokens": counts.tokens,
            **(money if self._priced else dict.fromkeys(money)),
            "limits": asdict(key.limits) if key else {},
            "used": used,
        }


def _add(waiting: Waiting, name: str, day: int, counts: Counts) -> None:
    days = waiting.setdefault(name, {})
    days[day] = days.get(day, Counts()) + counts


@lru_cache(maxsize=8)
def month_of(day: int) -> int:
    """The first day of a day's month, both counted since 1970.

    >>> month_of(31), month_of(30)
    (31, 0)
    """
    first = date.fromordinal(date(1970, 1, 1).toordinal() + day).replace(day=1)
    return first.toordinal() - date(1970, 1, 1).toordinal()


def _tomorrow(now: float) -> float:
    return (now // DAY + 1) * DAY


def _next_month(now: float) -> float:
    day = int(now // DAY)
    while month_of(day) == month_of(int(now // DAY)):
        day += 1
    return float(day * DAY)


def _look(path: Path) -> tuple[int, ...]:
    """What changes when a file does."""
    try:
        about = path.stat()
    except OSError:
        return ()
    return about.st_ino, about.st_size, about.st_mtime_ns
