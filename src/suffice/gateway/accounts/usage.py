"""Who asks, by key, and what each has taken: limits are checked in memory, and a thread keeps them on disk."""

import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from suffice.errors import OptionError
from suffice.gateway.accounts.keys import Key, digest_of
from suffice.gateway.accounts.store import DAY, Counts, Known, Store, UsageBatch, UsageStore, month_of
from suffice.gateway.accounts.windows import WIDTH, Window
from suffice.gateway.errors import GatewayError
from suffice.gateway.operations import metrics
from suffice.gateway.operations.shared import SharedCounters
from suffice.gateway.settings import Settings
from suffice.paths import stamp_of

LAG_SECONDS = 1.0
"""So long it takes at most until another worker, and the disk, know what was counted here."""

SETTLE_SECONDS = 0.05
"""A file that has not changed for so long is whole, also where it was not replaced at once."""


class UsedOfLimits(NamedTuple):
    """What of the limits of a day and a month is used."""

    tokens: int
    cost: float


class Usage:
    """The keys in force, and the counters of each."""

    def __init__(
        self, settings: Settings, counters: SharedCounters | None = None, store: UsageStore | None = None
    ) -> None:
        assert settings.keys  # noqa: S101
        self._path = Path(settings.keys)
        self._settings = settings
        self._priced = bool(settings.prices)
        self._counters = counters
        self._store: UsageStore = store or Store(settings.usage_file)
        self._seen = stamp_of(self._path)
        self._keys = self._read()
        self._windows: dict[str, Window] = {}
        self._known = Known({}, {})
        self._known_day = 0
        self._writer, self._number = uuid4().hex, 0
        self._pending: dict[str, dict[int, Counts]] = {}
        """Counts that are not kept yet, by name and day."""
        self._leaving: UsageBatch | None = None
        """What is being written, or may have been: it is told again, under its number, until that is known."""
        self._counting, self._storing = threading.Lock(), threading.Lock()
        self._wake, self._reload_asked, self._ending = threading.Event(), False, False
        self._troubles: set[str] = set()
        self._keeper = threading.Thread(target=self._keep, name="suffice-usage", daemon=True)

    def start(self) -> None:
        """Learn what was counted before, and begin to keep it."""
        now = time.time()
        with self._storing:
            for name, seconds in self._store.minute().items():
                with self._counters.lock() if self._counters else nullcontext():
                    for second, count in seconds.items():
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
        digests = [digest_of(one) for one in given if one]
        return next((self._keys[digest] for digest in digests if digest in self._keys), None)

    def admit(self, key: Key, *, spends: bool) -> None:
        """Count a request of a key, or refuse it; where it spends nothing, what was spent does not matter."""
        now = time.time()
        limits = key.limits
        spent = self.spent(key.name, now) if spends and (limits.tokens_per_day or limits.money_per_month) else None
        if spent and limits.tokens_per_day and spent.tokens >= limits.tokens_per_day:
            most = f"{limits.tokens_per_day} tokens a day, and has used {spent.tokens}"
            self._refuse(key, "tokens_per_day", most, (now // DAY + 1) * DAY, now)
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
        most -= self._known.elsewhere.get(name, 0)
        with self._counters.lock() if self._counters else nullcontext():
            return self._window(name).take(most, now)

    def _window(self, name: str) -> Window:
        if name not in self._windows:
            shared = self._counters.window(name, WIDTH) if self._counters else None
            self._windows[name] = Window(shared or memoryview(bytearray(8 * WIDTH)).cast("q"))
        return self._windows[name]

    def add(self, name: str, counts: Counts) -> None:
        """Count what a request took."""
        with self._counting:
            days = self._pending.setdefault(name, {})
            day = int(time.time() // DAY)
            days[day] = days.get(day, Counts()) + counts

    def spent(self, name: str, now: float) -> UsedOfLimits:
        """What a key has used of its day and its month."""
        day = int(now // DAY)
        month = month_of(day)
        with self._counting:
            tokens, cost = self._known.spent.get(name, (0, 0.0))
            tokens = tokens if self._known_day == day else 0
            cost = cost if self._known_day >= month else 0.0
            for waiting in (self._pending, self._leaving.counts if self._leaving else {}):
                for when, counts in waiting.get(name, {}).items():
                    tokens += counts.tokens if when == day else 0
                    cost += counts.cost if when >= month else 0.0
        return UsedOfLimits(tokens, cost)

    def flush(self) -> None:
        """Write what was counted, and read what all have counted; what can't be written waits in memory."""
        with self._storing:
            trouble, is_late = "the usage of keys can't be kept, and is counted in memory", self._leaving is not None
            if self._living_on(trouble, self._exchange) and is_late:
                self._living_on(trouble, self._exchange)  # and now what was counted in the meantime

    def _exchange(self) -> None:
        now = time.time()
        with self._counting:
            if self._pending and not self._leaving:
                self._number += 1
                self._leaving, self._pending = UsageBatch(self._writer, self._number, self._pending), {}
        minute = {name: dict(window.buckets()) for name, window in list(self._windows.items())}
        try:
            known = self._store.exchange(self._leaving, minute, now)
        except Exception:
            self._known = self._known._replace(elsewhere={})  # what is not renewed would never be over
            raise
        with self._counting:
            self._known, self._known_day, self._leaving = known, int(now // DAY), None

    def _living_on(self, trouble: str, work: Callable[[], None]) -> bool:
        """Whether some work could be done; its trouble is told on the standard error, once while it lasts."""
        try:
            work()
        except Exception as error:  # whatever it is, requests are counted and the next try may succeed
            if trouble not in self._troubles:
                print(f"suffice: {trouble}: {_words(error)}", file=sys.stderr, flush=True)
            self._troubles.add(trouble)
            return False
        self._troubles.discard(trouble)
        return True

    def _keep(self) -> None:
        while not self._ending:
            self._wake.wait(LAG_SECONDS)
            self._wake.clear()
            self._living_on("the file of keys can't be looked at, and the old keys stay in force", self._look_again)
            self.flush()

    def _look_again(self) -> None:
        """Take new keys in force where the file has changed; a broken file changes nothing."""
        seen = stamp_of(self._path)
        if seen == self._seen and not self._reload_asked:
            return
        time.sleep(SETTLE_SECONDS)
        settled = stamp_of(self._path)
        if settled != seen or (settled and settled.size == 0):  # somebody is still writing
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
        return {key.sha256: key for key in self._settings.named_keys()}

    def summary(self) -> dict[str, Any]:
        """The usage of all keys, for the operator; GatewayError while it can't be read."""
        self.flush()
        now = time.time()
        try:
            with self._storing:
                since, totals = self._store.totals()
        except (sqlite3.Error, OSError) as error:
            message = f"the usage of keys can't be read now, and is counted in memory; ask again soon: {_words(error)}"
            raise GatewayError(503, message, kind="server_error", code="usage_unknown") from None
        keys = {key.name: key for key in self._keys.values()}
        names = [*keys, *sorted(totals.keys() - keys.keys())]
        told = [self._summary_of(name, keys.get(name), totals.get(name, Counts()), now) for name in names]
        return {"since": round(since, 3), "lag_seconds": LAG_SECONDS, "keys": told}

    def _summary_of(self, name: str, key: Key | None, counts: Counts, now: float) -> dict[str, Any]:
        money = {
            "cost": round(counts.cost, 9),
            "cost_over_one": round(counts.cost_over_one, 9),
            "cost_full": round(counts.cost_full, 9),
            "cost_saved": round(counts.cost_full - counts.cost, 9),
        }
        spent = self.spent(name, now)
        used = {
            "requests_per_minute": self._known.elsewhere.get(name, 0)
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


def _words(error: Exception) -> str:
    """What an error says; its kind where it says nothing, as a TimeoutError does."""
    return str(error) or type(error).__name__


def _next_month(now: float) -> float:
    first = month_of(int(now // DAY))
    return float(month_of(first + 31) * DAY)  # no month is longer
