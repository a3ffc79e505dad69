"""The counters of keys on disk (SQLite, WAL): they survive a restart, and workers share them."""

import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from operator import add, attrgetter
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

_FORMAT = 1


@dataclass
class Counts:
    """What a key has taken.

    >>> Counts(requests=1, prompt_tokens=10) + Counts(requests=1, completion_tokens=5)
    ... # doctest: +ELLIPSIS
    Counts(requests=2, refused=0, votes=0, samples=0, samples_saved=0, prompt_tokens=10, completion_tokens=5, ...)
    """

    requests: int = 0
    refused: int = 0
    votes: int = 0
    samples: int = 0
    samples_saved: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated_tokens: int = 0
    """Those of them that no upstream counted."""
    tokens_saved: int = 0
    cost: float = 0.0
    cost_full: float = 0.0

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
CREATE TABLE IF NOT EXISTS begun (time);
INSERT INTO begun SELECT {{now}} WHERE NOT EXISTS (SELECT * FROM begun);
PRAGMA user_version = {_FORMAT};
"""  # noqa: S608
_ADD = (
    f"INSERT INTO usage (name, day, {', '.join(_NAMES)}) VALUES (?, ?{', ?' * len(_NAMES)}) "  # noqa: S608
    f"ON CONFLICT DO UPDATE SET {', '.join(f'{name} = {name} + excluded.{name}' for name in _NAMES)}"
)


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

    def add(
        self, counts: Mapping[str, Mapping[int, Counts]], minute: Iterable[tuple[str, int, int]], now: float
    ) -> None:
        """Add to the counters of names, by day, and keep the requests of the last minute, by second."""
        rows = [(name, day, *_numbers(one)) for name, days in counts.items() for day, one in days.items()]

        def write(connection: sqlite3.Connection) -> None:
            with connection:
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany(_ADD, rows)
                connection.execute("DELETE FROM minute WHERE second < ?", (now - 120,))
                connection.executemany("INSERT OR REPLACE INTO minute VALUES (?, ?, ?)", minute)

        self._sound(write)

    def spent(self, day: int, month: int) -> dict[str, tuple[int, float]]:
        """The tokens of the day, and the money since the first day of the month, by name."""
        query = (
            "SELECT name, SUM(CASE day WHEN ? THEN prompt_tokens + completion_tokens ELSE 0 END), SUM(cost) "
            "FROM usage WHERE day >= ? AND day <= ? GROUP BY name"
        )
        rows = self._sound(lambda connection: connection.execute(query, (day, month, day)).fetchall())
        return {name: (tokens, cost) for name, tokens, cost in rows}

    def minute(self) -> list[tuple[str, int, int]]:
        """The requests of the last minute: name, second, number."""
        return self._sound(lambda connection: connection.execute("SELECT * FROM minute").fetchall())

    def elsewhere(self, here: Callable[[], Iterable[tuple[str, int, int]]], now: float) -> dict[str, int]:
        """The requests of the last minute on other machines, by name, who hear of those `here`: none share a file."""
        return {}

    def totals(self) -> dict[str, Counts]:
        """All that each name has taken."""
        sums = ", ".join(f"SUM({name})" for name in _NAMES)
        query = f"SELECT name, {sums} FROM usage GROUP BY name"  # noqa: S608
        rows = self._sound(lambda connection: connection.execute(query).fetchall())
        return {name: Counts(*numbers) for name, *numbers in rows}

    def since(self) -> float:
        """When the counting began."""
        (time_,) = self._sound(lambda connection: connection.execute("SELECT time FROM begun").fetchone())
        return float(time_)

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
