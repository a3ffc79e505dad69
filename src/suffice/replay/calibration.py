"""How true the certainty is: against the majority of all of a question's responses, which is as near as a pool gets."""

from collections.abc import Sequence

import numpy as np

from suffice.planning import UNIVERSAL, Prior, certainties, confidences
from suffice.pools import Pool, Question, draw_episodes
from suffice.replay.reliability import DECILES, Reliability, decile_sums, pooled
from suffice.tally import DEFAULT_BUDGET, NONE, Standings


def certainty_reliability(
    pool: Pool, draws: int, repeats: int = 20, seed: int = 0, prior: Prior = UNIVERSAL
) -> Reliability:
    """Certainty after so many draws, by decile, and how often the leader is the majority of all responses."""
    sums = np.zeros((DECILES, 3))
    for episodes in draw_episodes(pool, draws, repeats, seed):
        rows = np.arange(len(episodes.answers))
        sure = certainties(episodes.standings.at(rows, np.full(len(rows), draws)), prior)
        majorities = np.repeat([_majority(question) for question in episodes.questions], repeats)
        known = ~np.isnan(sure)
        sums += decile_sums(sure[known], (episodes.standings.reference == majorities)[known])
    return Reliability(sums)


def confidence_reliability(
    pool: Pool, draws: int, budget: int = DEFAULT_BUDGET, repeats: int = 20, seed: int = 0, prior: Prior = UNIVERSAL
) -> Reliability:
    """Confidence after so many draws, by decile, and how often the leader is the answer of the full budget."""
    sums = np.zeros((DECILES, 3))
    for episodes in draw_episodes(pool, budget, repeats, seed):
        rows = np.arange(len(episodes.answers))
        tallies = episodes.standings.at(rows, np.full(len(rows), draws))
        sums += decile_sums(
            confidences(tallies, prior), episodes.standings.leader[draws] == episodes.standings.reference
        )
    return Reliability(sums)


CHECKPOINTS = (4, 8, 16, 32)
"""Numbers of draws after which the certainty is checked."""


def certainty_reliabilities(pools: Sequence[Pool]) -> dict[str, Reliability]:
    """All pools together, by the number of draws; those with twice as many responses at least know a majority."""
    found = {}
    for draws in CHECKPOINTS:
        known = [pool for pool in pools if min(len(question.answers) for question in pool.questions) >= 2 * draws]
        together = pooled(certainty_reliability(pool, draws) for pool in known)
        if known and together:
            found[f"after {draws} draws"] = together
    return found


def _majority(question: Question) -> int:
    """The code of the answer that all responses elect."""
    return int(Standings(question.codes[None, :]).reference[0]) if len(question.codes) else NONE
