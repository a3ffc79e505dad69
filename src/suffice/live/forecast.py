"""What a vote will likely take: its controller over typical questions, by the rules of live votes."""

from functools import cache

import numpy as np

from suffice.controllers import Controller
from suffice.live.vote import COMPLETE_WITHOUT
from suffice.planning import Prior
from suffice.planning.approximate import simulate
from suffice.planning.model import CONCENTRATIONS, DISCOUNTS
from suffice.tally import IntArray, Tally

EPISODES = 400

_REPEATS = (CONCENTRATIONS[:, None] < 2) & (DISCOUNTS < 0.6)
TYPICAL = Prior(tuple((_REPEATS / _REPEATS.sum()).ravel().tolist()))
"""Questions on which two of three responses agree, in the mean: as on the corpora of traffic and on school sums."""


def foretell(controller: Controller, budget: int, *, certain: bool) -> float:
    """How many samples a vote on typical questions takes, in the mean.

    Args:
        controller: Who decides.
        budget: The most draws of a vote.
        certain: Whether it is certain that there is an answer; else a vote ends where no two of its first draws agree.

    >>> from suffice import get_controller
    >>> foretell(get_controller("sc:draws=4"), 8, certain=True)
    4.0
    """
    random = np.random.default_rng(1)
    samples = 0
    for answers in _episodes(budget):
        deciding, tally = controller.for_question(random), Tally(budget)
        while asked := deciding.next_round(tally):
            tally.add_round([str(answer) for answer in answers[tally.draws : tally.draws + asked]])
            if not certain and tally.draws >= COMPLETE_WITHOUT and tally.top(1)[0] == 1:
                break
        samples += tally.draws
    return samples / EPISODES


@cache
def _episodes(budget: int) -> IntArray:
    """The answers to typical questions in order of arrival, a row each."""
    return np.array([step.answer for step in simulate(TYPICAL, budget, EPISODES, seed=1)]).T
