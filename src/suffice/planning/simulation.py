"""Episodes drawn from the model of answers itself, for budgets whose partitions are too many to go over them all."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from suffice.planning.model import CONCENTRATIONS, DISCOUNTS, Prior
from suffice.planning.tables import SIZE_KEYS
from suffice.tally import IntArray


@dataclass(frozen=True)
class Step:
    """Many episodes after the same number of draws: the last answer, the largest vote counts, the leader, the keys."""

    draws: int
    answer: IntArray
    top: IntArray
    leader: IntArray
    keys: np.ndarray


def simulate(prior: Prior, budget: int, episodes: int, seed: int = 0, counts: int = 3) -> Iterator[Step]:
    """The episodes after each draw, in step, with so many of the largest vote counts.

    The arrays are overwritten by the next step, but for the answer.

    A draw of before is chosen, and its answer comes again unless, by d in c, it is a new one after all: that makes
    (c − d)/(n + α) for an answer with c votes.
    """
    random = np.random.default_rng(seed)
    # As many at each point of the grid as its weight says, so that chance has less to do.
    ends = np.cumsum(prior.weights)
    points = np.searchsorted(ends / ends[-1], (np.arange(episodes) + 0.5) / episodes)
    alpha, discount = CONCENTRATIONS[points // len(DISCOUNTS)], DISCOUNTS[points % len(DISCOUNTS)]
    every = np.arange(episodes)
    answers = np.zeros((budget, episodes), np.int16)
    votes = np.zeros((budget + 1) * episodes, np.int16)
    at_least = np.zeros((budget + 2) * episodes, np.int16)
    known, leader = np.zeros(episodes, np.int16), np.zeros(episodes, np.int16)
    top, keys = np.zeros((counts, episodes), np.int16), np.zeros(episodes, np.uint64)
    for draws in range(budget):
        chosen = random.random(episodes) * (draws + alpha)
        place = np.minimum(chosen.astype(np.int64), max(draws - 1, 0))
        again = answers[place, every]
        # The fraction is a chance of its own.
        new = (chosen >= draws) | ((chosen - place) * votes[again * np.int64(episodes) + every] < discount)
        answer = np.where(new, known, again)
        known += new
        answers[draws] = answer
        there = answer * np.int64(episodes) + every
        count = votes[there] + np.int16(1)
        votes[there] = count
        level = count * np.int64(episodes) + every
        rank = at_least[level]
        at_least[level] = rank + 1
        for place_at_top in range(counts):
            np.copyto(top[place_at_top], count, where=rank == place_at_top)
        keys += SIZE_KEYS[count] - SIZE_KEYS[count - 1]
        np.copyto(leader, answer, where=rank == 0)
        yield Step(draws + 1, answer, top, leader, keys)
