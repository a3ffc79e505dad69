"""Partitions: a tally up to the names of its answers, level by level, and how one more vote changes it."""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from suffice.tally import IntArray


@dataclass(frozen=True)
class Level:
    """All partitions of n votes, and the votes that may come next.

    `parts` has a row a partition: vote counts, most first, then zeros. Step e is a vote, to partition `parent[e]`, for
    one of the `count[e]` answers that have `size[e]` votes (0: a new answer), and makes partition `child[e]` of the
    next level. Steps are in order of their parents, larger sizes first; the last level has none.
    """

    parts: IntArray
    parent: IntArray
    size: IntArray
    count: IntArray
    child: IntArray

    @cached_property
    def answers(self) -> IntArray:
        """How many answers have votes."""
        answers: IntArray = (self.parts > 0).sum(axis=1)
        return answers

    @cached_property
    def first_step(self) -> IntArray:
        """Where each partition's steps begin."""
        return np.searchsorted(self.parent, np.arange(len(self.parts) + 1))

    @cached_property
    def step_of_size(self) -> IntArray:
        """The step for each partition and size of part, -1 where it has none."""
        steps = np.full((len(self.parts), self.parts.shape[1] + 1), -1, np.int32)
        steps[self.parent, self.size] = np.arange(len(self.parent))
        return steps

    @cached_property
    def keys(self) -> np.ndarray:
        """The partitions as byte strings, in rising order."""
        return partition_keys(self.parts)


def partition_keys(parts: IntArray) -> np.ndarray:
    """Rows of parts as byte strings, which compare as the rows do."""
    rows = np.ascontiguousarray(parts, np.uint8)
    return rows.view(f"S{rows.shape[1]}").ravel()


@lru_cache(maxsize=2)
def levels(budget: int) -> list[Level]:
    """The partitions of 0 to `budget` votes."""
    parts = np.zeros((1, budget), np.uint8)
    found = []
    for votes in range(budget + 1):
        last = votes == budget
        # A vote keeps the order where it goes to the first of equal parts, or to the first zero.
        before = np.pad(parts[:, :-1].astype(int), [(0, 0), (1, 0)], constant_values=budget + 1)
        parent, place = np.nonzero((parts < before) if not last else np.zeros_like(parts, bool))
        size = parts[parent, place].astype(int)
        count = np.where(size == 0, 1, (parts[parent] == size[:, None]).sum(axis=1))
        grown = parts[parent]
        grown[np.arange(len(parent)), place] += 1
        keys, child = np.unique(partition_keys(grown), return_inverse=True)
        found.append(Level(parts, parent, size, count, child))
        parts = np.ascontiguousarray(keys).view(np.uint8).reshape(-1, budget) if not last else parts
    return found
