"""The decision process of a panel, in steps: what is seen of a vote, what may be done, and what that is worth.

A step asks one voter up to the next of its `STEPS`. Money decides: the value of a right answer, less what tokens cost.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from suffice.errors import OptionError
from suffice.panel.episodes import PanelEpisodes, draw_panel
from suffice.panel.tallies import PanelTallies
from suffice.panel.voters import PoolVoter, aligned
from suffice.panel.weights import learn_weights
from suffice.pools import Pool
from suffice.tally import FloatArray, IntArray

STEPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
"""How often a voter has been asked after each of its steps."""

EPISODES = 6000
"""About so many episodes of questions on which responses differ are drawn, however many questions those are."""

GOLD = 0.5
"""How much of being right goes by gold answers where they are known; the rest by the full vote: fewer accidents."""

FURTHEST = 5.0
"""A leader that is further ahead than so many deviations is as good as settled."""


def ends_of(budget: int) -> IntArray:
    """How often a voter has been asked before its steps, and after each."""
    return np.array([0, *(step for step in STEPS if step < budget), budget])


def features(voters: int) -> int:
    """How many numbers `standing` has."""
    return 10 + 7 * voters + 2 * voters * (voters - 1)


def standing(tallies: PanelTallies, weights: Sequence[float]) -> FloatArray:
    """How votes stand, as numbers that mean the same on easy and on hard questions, at [row, feature].

    The lead by weight, in shares and in deviations; how much of it each voter backs, and how little that voter has
    been asked; and where voters disagree, how much.
    """
    heavy = np.asarray(weights, float)
    rows = np.arange(len(tallies))
    votes, draws = tallies.votes, tallies.draws
    sums = tallies.sums(weights)
    first = sums.argmax(axis=1)
    best = sums[rows, first]
    others = sums.copy()
    others[rows, first] = -1
    second = others.argmax(axis=1)
    next_best = np.maximum(others[rows, second], 0)
    total = np.maximum(sums.sum(axis=1), 1e-9)
    for_first = votes[rows, :, first]
    for_second = np.where(next_best[:, None] > 0, votes[rows, :, second], 0)
    spread = np.sqrt(np.maximum((heavy**2 * (for_first + for_second)).sum(axis=1), 1e-9))
    ahead = np.minimum((best - next_best) / spread, FURTHEST)
    margin, near = (best - next_best) / total, np.exp(-ahead)
    columns = [np.ones(len(rows)), margin, margin**2, best / total, ahead, ahead**2 / FURTHEST]
    columns += [near, np.exp(-(ahead**2) / 2), 1 / (1 + draws.sum(axis=1)), draws.sum(axis=1) > 0]
    fewness = 1 / (1 + draws)
    backs = (for_first + 0.5) * fewness
    leads = (for_first - for_second) * fewness
    dissents = votes.max(axis=2) > for_first + 0.5
    for one in range(draws.shape[1]):
        few = fewness[:, one]
        columns += [backs[:, one], backs[:, one] ** 2, leads[:, one], dissents[:, one], few, few * margin, few * near]
        for other in range(one):
            both = np.einsum("rk,rk->r", votes[:, one], votes[:, other]) * few * fewness[:, other]
            columns += [leads[:, one] * leads[:, other], both]
            columns += [dissents[:, other] * few, dissents[:, one] * fewness[:, other]]
    return np.stack(columns, axis=1).astype(float)


@dataclass(frozen=True)
class PanelProcess:
    """Episodes to decide in, and what an answer is worth; an episode at one moment is a row and its steps made."""

    episodes: PanelEpisodes
    counts: FloatArray
    """What part of all questions each row is, a question being EPISODES over their number."""
    weights: tuple[float, ...]
    value: float
    """What a right answer is worth, in the money of the prices."""
    labels: bool = True
    """Whether right goes by gold answers too; else by the panel's full vote alone."""

    @cached_property
    def ends(self) -> IntArray:
        """How often a voter has been asked after so many steps."""
        return ends_of(self.episodes.budget)

    @cached_property
    def _full(self) -> IntArray:
        return self.episodes.full_vote(self.weights)

    def tallies(self, rows: IntArray, made: IntArray) -> PanelTallies:
        """What has been seen after these steps."""
        return PanelTallies(self.episodes.answers[rows], self.ends[made])

    def worth(self, answer: IntArray, rows: IntArray) -> FloatArray:
        """What these answers are worth."""
        trust = np.where(self.episodes.known[rows] & self.labels, GOLD, 0)
        right = trust * (answer == self.episodes.gold[rows]) + (1 - trust) * (answer == self._full[rows])
        worth: FloatArray = self.value * right
        return worth


def panel_process(voters: Sequence[PoolVoter], value: float, budget: int, labels: bool, seed: int) -> PanelProcess:
    """The process that voters with pools make: `fit_panel` says what is what."""
    if not 0 < value < float("inf"):
        raise OptionError(f"must be a number above 0, not {value}", "value_of_an_answer")
    voters = aligned(voters)
    agreed = {
        same[0].id
        for same in zip(*(voter.pool for voter in voters), strict=True)
        if len({answer for question in same for answer in question.answers}) == 1
    }
    drawn, counts = [], []
    for settled in (True, False):
        some = [replace(one, pool=kept) for one in voters if (kept := _only(one.pool, agreed, settled))]
        # Of a question on which all responses agree, one episode tells all.
        repeats = 1 if settled else max(1, EPISODES // max(len(voters[0].pool) - len(agreed), 1))
        for batch in draw_panel(some, budget, repeats, seed) if some else ():
            drawn.append(batch.panel)
            counts.append(np.full(len(batch.panel), 1 / repeats))
    parts = np.concatenate(counts) * EPISODES / len(voters[0].pool)
    return PanelProcess(PanelEpisodes.joined(drawn), parts, learn_weights(voters, labels), value, labels)


def _only(pool: Pool, ids: Collection[str], wanted: bool) -> Pool | None:
    """The pool with these questions alone, or with all others; None where there are none."""
    questions = tuple(question for question in pool if (question.id in ids) == wanted)
    return Pool(pool.name, questions) if questions else None
