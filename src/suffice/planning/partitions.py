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

    @cached_property
    def answers(self) -> IntArray:
        """How many answers have votes."""
        answers: IntArray = (self.parts > 0).sum(axis=1)
        return answers

    @cached_property
    def first_step(self) -> IntArray:
        """Where each partition's steps begin."""
        return np.searchsorted(self.parent, np.arange(len(self.parts) + 1))

    def step_of_size(self) -> IntArray:
        """The step for each partition and size of part, -1 where it has none; not kept, since it is large."""
        steps = np.full((len(self.parts), int(self.size.max(initial=0)) + 1), -1, np.int32)
        steps[self.parent, self.size] = np.arange(len(self.parent))
        return steps


SIZE_KEYS = np.array([0, *(pow(6364136223846793005, size, 2**64) for size in range(1, 513))], np.uint64)
"""A partition's key is the sum over its parts of their sizes' keys, modulo 2⁶⁴: no two partitions share one."""


def partition_keys(parts: IntArray) -> np.ndarray:
    """The key of each row of parts."""
    keys: np.ndarray = SIZE_KEYS[parts].sum(axis=1, dtype=np.uint64)
    return keys


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
