"""Tables with a row for each partition, and how tallies find theirs."""

from dataclasses import dataclass

import numpy as np

from suffice.planning.partitions import SIZE_KEYS, Level, partition_keys
from suffice.tally import IntArray, Tallies, Tally


@dataclass(frozen=True)
class Table:
    """Columns of numbers with a row for each partition, level by level."""

    keys: np.ndarray
    starts: IntArray
    columns: dict[str, np.ndarray]

    @classmethod
    def of(cls, levels: list[Level], **columns: list[np.ndarray]) -> "Table":
        """Columns that are given level by level."""
        starts = np.cumsum([0, *(len(level.parts) for level in levels)])
        joined = {name: np.concatenate(parts) for name, parts in columns.items()}
        return cls(np.concatenate([level.keys for level in levels]), starts, joined)

    def rows(self, tallies: Tallies) -> IntArray:
        """The row of each tally's partition.

        The partition is one of draws: each none is a part of size 1 of its own, behind the answers that have votes.
        """
        votes = tallies.votes
        none = tallies.draws - votes.sum(axis=1)
        keys = partition_keys(votes) + none.astype(np.uint64) * SIZE_KEYS[1]
        rows = np.empty(len(tallies), int)
        for draws in np.unique(tallies.draws):
            start, end = self.starts[draws : draws + 2]
            chosen = tallies.draws == draws
            rows[chosen] = start + np.searchsorted(self.keys[start:end], keys[chosen])
        return rows

    def row(self, tally: Tally) -> int:
        """The row of one tally's partition."""
        ranked = tally.top(tally.draws)
        # In whole numbers of Python: a few are quicker than an array, and overflow is no warning.
        key = sum(map(_SIZE_KEYS.__getitem__, ranked)) + (tally.draws - sum(ranked)) * _SIZE_KEYS[1]
        start, end = self.starts[tally.draws], self.starts[tally.draws + 1]
        return int(start + np.searchsorted(self.keys[start:end], np.uint64(key % 2**64)))


_SIZE_KEYS: list[int] = SIZE_KEYS.tolist()
