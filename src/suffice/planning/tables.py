"""Tables with a row for each partition, and how tallies find theirs; for large budgets, what takes over after them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from suffice.planning.partitions import SIZE_KEYS, Level, partition_keys
from suffice.tally import IntArray, Tallies, Tally


class Lookup(Protocol):
    """Numbers by name that depend on a tally's partition."""

    def find(self, column: str, tally: Tally) -> float:
        """The number for one tally."""

    def find_many(self, column: str, tallies: Tallies) -> np.ndarray:
        """The number for each row."""

    def find_states(self, column: str, keys: np.ndarray, top: IntArray, draws: int) -> np.ndarray:
        """The number for partitions of the same number of draws, by their keys and three largest counts."""


@dataclass(frozen=True)
class Table:
    """Columns of numbers with a row for each partition, level by level.

    The partition is one of draws: each none is a part of size 1 of its own.
    """

    keys: np.ndarray
    starts: IntArray
    columns: dict[str, np.ndarray]

    @classmethod
    def of(cls, levels: list[Level], **columns: list[np.ndarray]) -> "Table":
        """Columns that are given level by level."""
        starts = np.cumsum([0, *(len(level.parts) for level in levels)])
        joined = {name: np.concatenate(parts) for name, parts in columns.items()}
        return cls(np.concatenate([level.keys for level in levels]), starts, joined)

    @property
    def most_draws(self) -> int:
        """There are partitions of so many draws."""
        return len(self.starts) - 2

    def find(self, column: str, tally: Tally) -> float:
        """The number for one tally."""
        ranked = tally.top(tally.draws)
        # In whole numbers of Python: a few are quicker than an array, and overflow is no warning.
        key = sum(map(_SIZE_KEYS.__getitem__, ranked)) + (tally.draws - sum(ranked)) * _SIZE_KEYS[1]
        start, end = self.starts[tally.draws], self.starts[tally.draws + 1]
        row = start + np.searchsorted(self.keys[start:end], np.uint64(key % 2**64))
        number: float = self.columns[column][row].item()
        return number

    def find_many(self, column: str, tallies: Tallies) -> np.ndarray:
        """The number for each row; 0 for one with more draws than there are partitions of."""
        votes = tallies.votes
        none = tallies.draws - votes.sum(axis=1)
        keys = partition_keys(votes) + none.astype(np.uint64) * SIZE_KEYS[1]
        numbers = np.zeros(len(keys), self.columns[column].dtype)
        for draws in np.unique(tallies.draws[tallies.draws <= self.most_draws]).tolist():
            chosen = tallies.draws == draws
            numbers[chosen] = self.find_states(column, keys[chosen], votes[:, :3], draws)
        return numbers

    def find_states(self, column: str, keys: np.ndarray, top: IntArray, draws: int) -> np.ndarray:
        """The number for partitions of the same number of draws, by their keys."""
        start, end = self.starts[draws : draws + 2]
        numbers: np.ndarray = self.columns[column][start + np.searchsorted(self.keys[start:end], keys)]
        return numbers


MOST_KNOWN = 100_000

_SIZE_KEYS: list[int] = SIZE_KEYS.tolist()


@dataclass(frozen=True)
class LargeTable:
    """A table for the first draws, and for those after them a function of the three largest counts and the draws."""

    first: Table
    later: Callable[[str, IntArray, int], np.ndarray]
    _known: dict[tuple[str, int, tuple[int, ...]], float] = field(default_factory=dict)

    def find(self, column: str, tally: Tally) -> float:
        """The number for one tally."""
        if tally.draws <= self.first.most_draws:
            return self.first.find(column, tally)
        state = (column, tally.draws, tally.top(3))
        if state not in self._known:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[state] = self.later(column, np.array([state[2]]), tally.draws)[0].item()
        return self._known[state]

    def find_states(self, column: str, keys: np.ndarray, top: IntArray, draws: int) -> np.ndarray:
        """The number for partitions of the same number of draws."""
        if draws <= self.first.most_draws:
            return self.first.find_states(column, keys, top, draws)
        return self.later(column, top, draws)

    def find_many(self, column: str, tallies: Tallies) -> np.ndarray:
        """The number for each row."""
        numbers = self.first.find_many(column, tallies)
        top = tallies.top(3)
        for draws in np.unique(tallies.draws[tallies.draws > self.first.most_draws]):
            chosen = tallies.draws == draws
            numbers[chosen] = self.later(column, top[chosen], int(draws))
        return numbers
