"""Controllers of a panel: from the votes of each voter to the voter to ask next, and how often."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from suffice.controllers import Controller
from suffice.planning import Plan
from suffice.tally import DEFAULT_BUDGET, NONE, FloatArray, IntArray, Tally

LATE = 2.0**-44
"""A first vote counts this much less than 1, and each later one twice as much less.

So among equals the answer that reached that number first leads."""


def vote_sizes(places: IntArray, voters: IntArray) -> FloatArray:
    return 1 - LATE * 2.0 ** np.minimum(places, 32) * (1 + voters / 100)


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
        return np.einsum("j,rjk->rk", np.asarray(weights, float), self.votes)

    def leader(self, weights: Sequence[float]) -> IntArray:
        """The answer of each row that weighs most; NONE where nobody gave one."""
        sums = self.sums(weights)
        return np.where(sums.max(axis=1) > 0, sums.argmax(axis=1), NONE)


class PanelController(Controller):
    """Decides from the tally alone, which knows who voted; live it is a controller like others."""

    needs_rounds: ClassVar[bool] = True

    voters: tuple[str, ...]
    """Their names; arrays have them in this order."""
    weights: tuple[float, ...]
    budget: int = DEFAULT_BUDGET
    """The most draws of each."""

    @abstractmethod
    def choose_many(self, tallies: PanelTallies) -> IntArray:
        """The number of draws of each voter, at [row, voter]; none at all stops."""

    def next_draws(self, tallies: PanelTallies) -> IntArray:
        """The choices, each cut to what the voter's budget has left."""
        return np.minimum(self.choose_many(tallies), tallies.budget - tallies.draws)

    def choose(self, tally: Tally) -> list[str]:
        """The voters to ask next, a name for each draw."""
        if tally.absent:
            return self.choose_present(tally, [voter for voter in self.voters if voter not in tally.absent])
        (draws,) = self.next_draws(PanelTallies.of(tally, self.voters, self.budget))
        return [voter for voter, number in zip(self.voters, draws, strict=True) for _ in range(number)]

    def choose_present(self, tally: Tally, present: list[str]) -> list[str]:
        """The first of these, as often as `plan` asks a model that is alone."""
        return present[:1] * Plan().next_round(tally)

    def decide(self, tally: Tally) -> int:
        return len(self.choose(tally))


@dataclass(frozen=True, repr=False)
class Cascade(PanelController):
    """The first voter is asked `first` times; while the answers differ, the next is asked, up to `then` times.

    >>> cascade = Cascade(("small", "large"), first=2, then=3, weight=2)
    >>> tally = Tally()
    >>> cascade.choose(tally)
    ['small', 'small']
    >>> tally.add("7", "small"); tally.add("9", "small"); tally.end_round()
    >>> cascade.choose(tally)
    ['large']
    """

    voters: tuple[str, ...] = ()
    first: int = 4
    agree: float = 1.0
    """It is enough where the leader has this share of the first voter's draws."""
    then: int = 5
    """Fewer where they could not change the answer."""
    weight: float = 3.0
    """How much more the next voter's votes weigh than those of the one before."""
    budget: int = DEFAULT_BUDGET

    def __post_init__(self) -> None:
        self.require("first", self.first >= 1, "at least 1")
        self.require("then", self.then >= 0, "at least 0")
        self.require("agree", 0 < self.agree <= 1, "above 0 and at most 1")
        self.require("weight", self.weight > 0, "above 0")

    def __str__(self) -> str:
        return f"cascade:first={self.first},agree={self.agree:g},then={self.then},weight={self.weight:g}"

    @property
    def weights(self) -> tuple[float, ...]:  # type: ignore[override]
        return tuple(self.weight**place for place in range(len(self.voters)))

    def choose_many(self, tallies: PanelTallies) -> IntArray:
        asked = np.zeros(tallies.draws.shape, np.intp)
        asked[:, 0] = np.maximum(self.first - tallies.draws[:, 0], 0)
        share = np.rint(tallies.votes[:, 0].max(axis=1)) / np.maximum(tallies.draws[:, 0], 1)
        differ = (asked[:, 0] == 0) & (share < self.agree)
        ranked = np.sort(tallies.sums(self.weights), axis=1)
        ahead = ranked[:, -1] - (ranked[:, -2] if ranked.shape[1] > 1 else 0)
        for place in range(1, len(self.voters)):
            left = np.maximum(min(self.then, tallies.budget) - tallies.draws[:, place], 0)
            begun = tallies.draws[:, place] > 0
            open_yet = differ & (left > 0) & (~begun | (left * self.weights[place] >= ahead))
            asked[:, place] = open_yet
            differ &= ~open_yet
        return asked

    def choose_present(self, tally: Tally, present: list[str]) -> list[str]:
        """These in their order, and the last of them in the place of whoever is missing."""
        beyond = tally.draws - self.first
        if beyond < 0:
            return present[:1] * -beyond
        left = self.then * (len(self.voters) - 1) - beyond
        if left <= 0 or tally.top(1)[0] >= self.agree * tally.draws:
            return []
        voter = present[min(1 + beyond // self.then, len(present) - 1)]
        weighed = PanelTallies.of(tally, self.voters, self.budget).sums(self.weights)[0]
        *_, second, first = sorted([0.0, 0.0, *weighed])
        return [voter] if left * self.weights[self.voters.index(voter)] >= first - second else []
