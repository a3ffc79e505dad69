"""Tables over all partitions, kept in the user's cache directory once they are worked out."""

import hashlib
import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from suffice.errors import OptionError
from suffice.paths import write_whole
from suffice.planning.partitions import Level, partition_keys
from suffice.tally import IntArray, Tallies

VERSION = 1
"""Part of every cache file's name: raise it when the tables change their meaning."""


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

    @cached_property
    def row_by_parts(self) -> dict[bytes, int]:
        """The row of a partition by its parts, as bytes."""
        return {key: row for row, key in enumerate(self.keys.tolist())}


def cached(build: Callable[[], Table], *identity: object) -> Table:
    """The table from the cache; where it isn't there, or isn't whole, it is built and kept.

    Files are written whole under their final name, so that two processes at once do no harm.
    """
    name = hashlib.sha256(repr((VERSION, *identity)).encode()).hexdigest()[:24]
    path = cache_folder() / f"plan-{name}.npz"
    try:
        with np.load(path, allow_pickle=False) as file:
            columns = {name: file[name] for name in file.files}
        return Table(columns.pop("keys"), columns.pop("starts"), columns)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        table = build()
    data = BytesIO()
    arrays: dict[str, Any] = {"keys": table.keys, "starts": table.starts, **table.columns}
    np.savez(data, **arrays)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, data.getvalue())
    except (OSError, OptionError):
        pass  # a cache that can't be written is only slower
    return table


def cache_folder() -> Path:
    """Where tables are kept: `suffice` in XDG_CACHE_HOME, or in ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "suffice"
