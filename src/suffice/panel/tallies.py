"""Votes of a panel as arrays: what each voter has said of each question, and how that stands by weight."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from suffice.tally import NONE, FloatArray, IntArray, Tally

LATE = 2.0**-44
"""How much less than one a voter's first vote counts, and each later one twice as much less.

So among equals that answer leads whose last vote came first, which is the one that reached the number first."""


def vote_sizes(places: IntArray, voters: IntArray) -> FloatArray:
    """What a voter's vote counts for, by its place among that voter's: hardly less than 1, the earlier the more."""
    sizes: FloatArray = 1 - LATE * 2.0 ** np.minimum(places, 32) * (1 + voters / 100)
    return sizes


@dataclass(frozen=True)
class PanelTallies:
    """Many questions at one moment: the first `draws[row, voter]` answers of each voter have been seen.

    >>> tally = Tally()
    >>> for answer, voter in [("7", "small"), ("9", "large"), ("9", "large")]:
    ...     tally.add(answer, voter)
    >>> seen = PanelTallies.of(tally, ["small", "large"], budget=8)
    >>> seen.draws.tolist(), seen.votes.round().tolist()
    ([[1, 2]], [[[1.0, 0.0], [0.0, 2.0]]])
    """

    answers: IntArray
    """Codes, at [row, voter, place]; what lies beyond `draws` is the future, and is not looked at."""
    draws: IntArray

    @staticmethod
    def of(tally: Tally, voters: Sequence[str], budget: int) -> "PanelTallies":
        """One live tally, which knows who voted."""
        codes = {answer: code for code, answer in enumerate(dict.fromkeys(filter(None, tally.answers)))}
        # Who is asked in the place of one that is left out may be asked more often than the budget has it.
        most = max(budget, *map(tally.voters.count, voters))
        answers, draws = np.full((1, len(voters), most), NONE), np.zeros((1, len(voters)), np.intp)
        for answer, voter in zip(tally.answers, tally.voters, strict=True):
            place = voters.index(voter or "")
            answers[0, place, draws[0, place]] = NONE if answer is None else codes[answer]
            draws[0, place] += 1
        return PanelTallies(answers, draws)

    def __len__(self) -> int:
        return len(self.draws)

    @property
    def budget(self) -> int:
        """The most draws of each voter."""
        return int(self.answers.shape[2])

    @cached_property
    def votes(self) -> FloatArray:
        """The votes for each answer, at [row, voter, code]."""
        seen = self.answers[:, :, : max(self.draws.max(initial=0), 1)]
        rows, voters, places = np.nonzero((np.arange(seen.shape[2]) < self.draws[..., None]) & (seen != NONE))
        codes = seen[rows, voters, places]
        kinds = int(codes.max(initial=0)) + 1
        there = (rows * seen.shape[1] + voters) * kinds + codes
        size = len(self) * seen.shape[1] * kinds
        counts = np.bincount(there, vote_sizes(places, voters), size).astype(float)
        return counts.reshape(len(self), seen.shape[1], kinds)

    def sums(self, weights: Sequence[float]) -> FloatArray:
        """What each answer weighs, at [row, code]."""
        weighed: FloatArray = np.einsum("j,rjk->rk", np.asarray(weights, float), self.votes)
        return weighed

    def leader(self, weights: Sequence[float]) -> IntArray:
        """The answer of each row that weighs most; NONE where nobody gave one."""
        sums = self.sums(weights)
        return np.where(sums.max(axis=1) > 0, sums.argmax(axis=1), NONE)
