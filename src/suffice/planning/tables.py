"""Partitions: a tally up to the names of its answers, level by level, and how one more vote changes it.

Tables have a row for each of them, by which tallies find theirs; for large budgets, something else takes over.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import Any, Generic, TypeVar

import numpy as np

from suffice.tally import IntArray, Tallies, Tally


@dataclass(frozen=True)
class Level:
    """All partitions of n votes, and the votes that may come next.

    `parts` has a row a partition: vote counts, most first, then zeros. Step e is a vote, to partition `parent[e]`, for
    one of the `count[e]` answers that have `size[e]` votes (0: a new answer), and makes partition `child[e]` of the
    next level. Steps are in order of their parents, larger sizes first; the last level has none. `origin` is a step of
    the level before that makes each partition, and `keys` are what it is found by, in rising order.
    """

    parts: IntArray
    keys: np.ndarray
    origin: IntArray
    parent: IntArray
    size: IntArray
    count: IntArray
    child: IntArray


SIZE_KEYS = np.array([0, *(pow(6364136223846793005, size, 2**64) for size in range(1, 513))], np.uint64)
"""A partition's key is the sum over its parts of their sizes' keys, modulo 2⁶⁴: no two partitions share one."""


@lru_cache(maxsize=2)
def levels(budget: int) -> list[Level]:
    """The partitions of 0 to `budget` votes, each level in rising order of the keys."""
    parts, keys, origin = np.zeros((1, budget), np.uint8), np.zeros(1, np.uint64), np.zeros(0, np.intp)
    nothing = np.zeros(0, np.uint8)
    found = []
    for votes in range(budget):
        # A vote keeps the order where it goes to the first of equal parts, or to the first zero.
        before = np.pad(parts[:, :votes], [(0, 0), (1, 0)], constant_values=budget + 1)
        parent, place = np.nonzero(parts[:, : votes + 1] < before)
        size = parts[parent, place]
        equal = (parts[:, :votes][parent] == size[:, None]).sum(axis=1, dtype=np.uint8)
        grown = keys[parent] + SIZE_KEYS[size + 1] - SIZE_KEYS[size]
        next_keys, next_origin, child = np.unique(grown, return_index=True, return_inverse=True)
        count = np.where(size == 0, np.uint8(1), equal)
        found.append(Level(parts, keys, origin, parent.astype(np.int32), size, count, child.astype(np.int32)))
        parts = parts[parent[next_origin]]
        parts[np.arange(len(parts)), place[next_origin]] += 1
        keys, origin = next_keys, next_origin
    return [*found, Level(parts, keys, origin, nothing, nothing, nothing, nothing)]


K = TypeVar("K")
V = TypeVar("V")


class Cache(Generic[K, V]):
    """The last entries that were made, at most so many. Of threads that need one at once, one makes it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: dict[K, V] = {}
        self._locks: dict[K, Lock] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Cache, (self._most,)  # entries are not pickled: they are large, and made again

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    def get(self, key: K, make: Callable[[], V]) -> V:
        if (found := self._entries.get(key)) is not None:
            return found
        with self._locks.setdefault(key, Lock()):
            if (found := self._entries.get(key)) is None:
                found = make()
                while len(self._entries) >= self._most:
                    self._entries.pop(next(iter(self._entries)), None)
                self._entries[key] = found
        self._locks.pop(key, None)
        return found


MOST_KNOWN = 100_000

_SIZE_KEYS: list[int] = SIZE_KEYS.tolist()

Later = Callable[[str, IntArray, int], np.ndarray]
"""The numbers of a column by the three largest counts, a row a tally, and the draws."""


class Table:
    """Columns of numbers with a row for each partition, level by level.

    The partition is one of draws: each none is a part of size 1 of its own.
    """

    def __init__(self, levels: list[Level], columns: dict[str, np.ndarray], later: Later | None = None) -> None:
        self.keys = np.concatenate([level.keys for level in levels])
        self.starts = np.cumsum([0, *(len(level.parts) for level in levels)])
        self.columns = columns
        self.later = later
        """For large budgets: the numbers after the last level."""
        self._known: Cache[tuple[str, int, tuple[int, ...]], float] = Cache(MOST_KNOWN)

    def find(self, column: str, tally: Tally) -> float:
        draws = tally.draws
        if self.later and draws > len(self.starts) - 2:
            later, top = self.later, tally.top(3)
            return self._known.get((column, draws, top), lambda: later(column, np.array([top]), draws)[0].item())
        ranked = tally.top(draws)
        # In whole numbers of Python: a few are quicker than an array, and overflow is no warning.
        key = sum(map(_SIZE_KEYS.__getitem__, ranked)) + (draws - sum(ranked)) * _SIZE_KEYS[1]
        start, end = self.starts[draws], self.starts[draws + 1]
        row = start + np.searchsorted(self.keys[start:end], np.uint64(key % 2**64))
        return self.columns[column][row].item()

    def find_many(self, column: str, tallies: Tallies) -> np.ndarray:
        votes, top = tallies.votes, tallies.top(3)
        none = tallies.draws - votes.sum(axis=1)
        keys = SIZE_KEYS[votes].sum(axis=1, dtype=np.uint64) + none.astype(np.uint64) * SIZE_KEYS[1]
        numbers = np.zeros(len(keys), self.columns[column].dtype)
        for draws in np.unique(tallies.draws).tolist():
            chosen = tallies.draws == draws
            numbers[chosen] = self.find_states(column, keys[chosen], top[chosen], draws)
        return numbers

    def find_states(self, column: str, keys: np.ndarray, top: IntArray, draws: int) -> np.ndarray:
        """The number for partitions of the same number of draws, by their keys and the three largest counts."""
        if self.later and draws > len(self.starts) - 2:
            return self.later(column, top, draws)
        start, end = self.starts[draws : draws + 2]
        return self.columns[column][start + np.searchsorted(self.keys[start:end], keys)]
