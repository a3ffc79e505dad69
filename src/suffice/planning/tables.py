"""Tables with a row for each partition, and how tallies find theirs."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from suffice.planning.partitions import Level, partition_keys
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
        answers, none = (votes > 0).sum(axis=1), tallies.draws - votes.sum(axis=1)
        places = np.arange(tallies.budget)
        single = (places >= answers[:, None]) & (places < (answers + none)[:, None])
        keys = partition_keys(np.where(single, 1, votes))
        rows = np.empty(len(tallies), int)
        for draws in np.unique(tallies.draws):
            start, end = self.starts[draws : draws + 2]
            chosen = tallies.draws == draws
            rows[chosen] = start + np.searchsorted(self.keys[start:end], keys[chosen])
        return rows

    def row(self, tally: Tally) -> int:
        """The row of one tally's partition."""
        ranked = tally.top(tally.budget)
        return self.row_by_parts[bytes(filter(None, ranked)) + b"\1" * (tally.draws - sum(ranked))]

    @cached_property
    def row_by_parts(self) -> dict[bytes, int]:
        """The row of a partition by its parts, as bytes."""
        return {key: row for row, key in enumerate(self.keys.tolist())}
