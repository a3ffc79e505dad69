"""How true the certainty is: against the majority of all of a question's responses, which is as near as a pool gets."""

import numpy as np

from suffice.planning import UNIVERSAL, Prior, certainties
from suffice.pools import Pool, Question, draw_episodes
from suffice.replay.reliability import DECILES, Reliability, decile_sums
from suffice.tally import NONE, Standings


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


def _majority(question: Question) -> int:
    """The code of the answer that all responses elect."""
    return int(Standings(question.codes[None, :]).reference[0]) if len(question.codes) else NONE
