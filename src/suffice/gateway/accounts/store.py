"""Where the usage of keys is kept: a port, and the counters on disk (SQLite, WAL), which workers share."""

import os
import sqlite3
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import date
from functools import lru_cache
from operator import add, attrgetter
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

T = TypeVar("T")

DAY = 86400

_FORMAT = 3

Minute = Mapping[str, Mapping[int, int]]
"""The requests of the last minute, by name and second."""


@dataclass
class Counts:
    """What a key has taken.

    >>> Counts(requests=1, prompt_tokens=10) + Counts(requests=1, completion_tokens=5)
    ... # doctest: +ELLIPSIS
    Counts(requests=2, refused=0, votes=0, samples=0, over_one_samples=0, samples_saved=0, prompt_tokens=10, ...)
    """

    requests: int = 0
    refused: int = 0
    votes: int = 0
    samples: int = 0
    over_one_samples: int = 0
    samples_saved: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated_tokens: int = 0
    """Those of them that no upstream counted."""
    over_one_tokens: int = 0
    over_one_prompt_tokens: int = 0
    tokens_saved: int = 0
    cost: float = 0.0
    cost_over_one: float = 0.0
    cost_full: float = 0.0

    @classmethod
    def of(cls, line: Mapping[str, Any]) -> "Counts":
        """Of one request, by its line in the log; a vote is one whether or not its client stayed for the answer."""
        told = {name: line[name] for name in _NAMES if name in line}
        votes, said = int("over_one_samples" in line), line.get("tokens", 0)
        return cls(**{**told, "requests": 1, "votes": votes, "completion_tokens": said})

    @property
    def tokens(self) -> int:
        """Of prompts and completions."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*map(add, _numbers(self), _numbers(other)))


_NAMES = [field.name for field in fields(Counts)]
_numbers = attrgetter(*_NAMES)
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS usage (name, day, {", ".join(_NAMES)}, PRIMARY KEY (name, day)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS minute (name, second, requests, PRIMARY KEY (name, second)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS booked (writer PRIMARY KEY, number, time) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS begun (time);
INSERT INTO begun SELECT {{now}} WHERE NOT EXISTS (SELECT * FROM begun);
PRAGMA user_version = {_FORMAT};
"""  # noqa: S608
_ADD = (
    f"INSERT INTO usage (name, day, {', '.join(_NAMES)}) VALUES (?, ?{', ?' * len(_NAMES)}) "  # noqa: S608
    f"ON CONFLICT DO UPDATE SET {', '.join(f'{name} = {name} + excluded.{name}' for name in _NAMES)}"
)
_BOOK = (
    "INSERT INTO booked VALUES (?, ?, ?) "
    "ON CONFLICT DO UPDATE SET number = excluded.number, time = excluded.time WHERE excluded.number > number"
)
_SPENT = (
    "SELECT name, SUM(CASE day WHEN ? THEN prompt_tokens + completion_tokens ELSE 0 END), SUM(cost) "
    "FROM usage WHERE day >= ? AND day <= ? GROUP BY name"
)


class UsageBatch(NamedTuple):
    """What a writer has counted, by name and day. Its batches are numbered upwards: one that comes again is known."""

    writer: str
    number: int
    counts: Mapping[str, Mapping[int, Counts]]


class Known(NamedTuple):
    """What all have counted, as limits need it."""

    spent: Mapping[str, tuple[int, float]]
    """The tokens of the day, and the money of the month, by name."""
    elsewhere: Mapping[str, int]
    """The requests of the last minute on other machines, by name."""


class Totals(NamedTuple):
    """All that each name has taken since a moment."""

    since: float
    counts: Mapping[str, Counts]


class UsageStore(Protocol):
    """Where the usage of keys is kept. Whatever a method raises, it is asked again later."""

    def exchange(self, batch: UsageBatch | None, minute: Minute, now: float) -> Known:
        """Book a batch, once however often it comes, and hear what all have counted."""

    def minute(self) -> Minute:
        """The requests of the last minute, as they were before a restart."""

    def totals(self) -> Totals:
        """All that each name has taken."""

    def close(self) -> None:
        """Let go of it."""


class Store:
    """The file with the counters; one that is broken is put aside, with a warning."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._inode = 0

    def close(self) -> None:
        """Close the file."""
        if self._connection:
            self._connection.close()
            self._connection = None

    def exchange(self, batch: UsageBatch | None, minute: Minute, now: float) -> Known:
        """Book a batch, with the requests of the last minute of those in it, and read what all have spent."""
        day = int(now // DAY)

        def book_and_read(connection: sqlite3.Connection) -> list[tuple[str, int, float]]:
            if batch:
                with connection:
                    _book(connection, batch, minute, now)
            return connection.execute(_SPENT, (day, month_of(day), day)).fetchall()

        return Known({name: (tokens, cost) for name, tokens, cost in self._sound(book_and_read)}, {})

    def minute(self) -> Minute:
        """The requests of the last minute."""
        found: dict[str, dict[int, int]] = {}
        rows = self._sound(lambda connection: connection.execute("SELECT * FROM minute").fetchall())
        for name, second, count in rows:
            found.setdefault(name, {})[second] = count
        return found

    def totals(self) -> Totals:
        """All that each name has taken."""
        query = f"SELECT name, {', '.join(f'SUM({name})' for name in _NAMES)} FROM usage GROUP BY name"  # noqa: S608

        def read(connection: sqlite3.Connection) -> Totals:
            (since,) = connection.execute("SELECT time FROM begun").fetchone()
            return Totals(float(since), {name: Counts(*numbers) for name, *numbers in connection.execute(query)})

        return self._sound(read)

    def _sound(self, action: Callable[[sqlite3.Connection], T]) -> T:
        """Do something with the file, or else with a new one."""
        try:
            return action(self._opened())
        except sqlite3.DatabaseError as error:
            if not _is_broken(error):
                raise
            self._put_aside(str(error))
            return action(self._opened())

    def _opened(self) -> sqlite3.Connection:
        if self._connection and self._inode != _inode(self._path):  # another worker put it aside
            self.close()
        if not self._connection:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self._path, timeout=5, isolation_level=None, check_same_thread=False)
            self._prepare(self._connection)
            self._inode = _inode(self._path)
        return self._connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        ((answer,),) = connection.execute("PRAGMA quick_check(1)").fetchall()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if answer != "ok" or version not in (0, _FORMAT):
            raise _BrokenError(answer if answer != "ok" else f"its format is {version}, not {_FORMAT}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.executescript(_SCHEMA.format(now=time.time()))

    def _put_aside(self, why: str) -> None:
        self.close()
        aside = self._path.with_name(f"{self._path.name}.broken-{time.time_ns()}")
        with suppress(FileNotFoundError):  # another worker did
            self._path.replace(aside)
            told = f"{why}; it was put aside as {aside.name}, and the counting begins anew"
            print(f"suffice: {self._path}: {told}", file=sys.stderr, flush=True)
        for end in ("-wal", "-shm"):
            self._path.with_name(self._path.name + end).unlink(missing_ok=True)


def _book(connection: sqlite3.Connection, batch: UsageBatch, minute: Minute, now: float) -> None:
    connection.execute("BEGIN IMMEDIATE")
    if not connection.execute(_BOOK, (batch.writer, batch.number, now)).rowcount:
        return  # it was booked before, and the writer did not hear of it
    days = [(name, day, *_numbers(one)) for name, days in batch.counts.items() for day, one in days.items()]
    seconds = [(name, *one) for name in batch.counts for one in minute.get(name, {}).items()]
    connection.executemany(_ADD, days)
    connection.executemany("INSERT OR REPLACE INTO minute VALUES (?, ?, ?)", seconds)
    connection.execute("DELETE FROM minute WHERE second < ?", (now - 120,))
    connection.execute("DELETE FROM booked WHERE time < ?", (now - 30 * DAY,))


@lru_cache(maxsize=8)
def month_of(day: int) -> int:
    """The first day of a day's month, both counted since 1970.

    >>> month_of(31), month_of(30)
    (31, 0)
    """
    first = date.fromordinal(date(1970, 1, 1).toordinal() + day).replace(day=1)
    return first.toordinal() - date(1970, 1, 1).toordinal()


class _BrokenError(sqlite3.DatabaseError):
    """The file is not what we wrote."""


def _is_broken(error: sqlite3.DatabaseError) -> bool:
    code = getattr(error, "sqlite_errorcode", None) or 0
    return isinstance(error, _BrokenError) or code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _inode(path: Path) -> int:
    try:
        return os.stat(path).st_ino  # noqa: PTH116
    except OSError:
        return 0
