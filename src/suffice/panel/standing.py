"""What a fitted controller sees of a vote, and the steps it may take: each asks one voter up to the next of `STEPS`."""

from collections.abc import Sequence

import numpy as np

from suffice.panel.tallies import PanelTallies
from suffice.tally import FloatArray, IntArray

STEPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
"""How often a voter has been asked after each of its steps."""

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
