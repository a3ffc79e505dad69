"""A forecast of the samples that a vote takes, by questions as they usually are."""

from functools import cache

import numpy as np

from suffice.controllers import Controller
from suffice.planning.approximate import simulate
from suffice.planning.model import CONCENTRATIONS, DISCOUNTS, Prior
from suffice.tally import IntArray, Tally

EPISODES = 400

_REPEATS = (CONCENTRATIONS[:, None] < 2) & (DISCOUNTS < 0.6)
TYPICAL = Prior(tuple((_REPEATS / _REPEATS.sum()).ravel().tolist()))
"""Questions on which two of three responses agree in the mean, as in the corpora of traffic and on GSM8K."""


def typical_draws(controller: Controller, budget: int) -> float:
    """Return the mean number of samples of a vote on typical questions.

    >>> from suffice import get_controller
    >>> typical_draws(get_controller("sc:draws=4"), 8)
    4.0
    """
    random = np.random.default_rng(1)
    samples = 0
    for answers in _episodes(budget):
        deciding, tally = controller.for_question(random), Tally(budget)
        while asked := deciding.next_round(tally):
            tally.add_round([str(answer) for answer in answers[tally.draws : tally.draws + asked]])
        samples += tally.draws
    return samples / EPISODES


@cache
def _episodes(budget: int) -> IntArray:
    """The answers to typical questions in order of arrival, a row each."""
    return np.array([step.answer for step in simulate(TYPICAL, budget, EPISODES, seed=1)]).T
