"""The confidence that more sampling would not change the answer, for any tally, under the universal prior."""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from suffice.errors import ControllerError
from suffice.planning.model import Model, Prior, build_model
from suffice.planning.partitions import partition_keys
from suffice.tally import FloatArray, IntArray, Tallies, Tally

LARGEST_BUDGET = 48
"""Beyond this there are too many partitions to go over them all."""


@lru_cache(maxsize=4)
def universal_model(budget: int) -> Model:
    """The model with the universal prior."""
    if budget > LARGEST_BUDGET:
        raise ControllerError(
            f"plans are exact up to a budget of {LARGEST_BUDGET}, not {budget}; rl can be trained for it"
        )
    return build_model(budget, Prior.universal())


def confidence(tally: Tally) -> float | None:
    """The probability that the present leader is the reference; None where the budget is too large to tell.

    It says that more sampling would not change the answer, not that the answer is right.
    """
    if tally.budget > LARGEST_BUDGET:
        return None
    return float(confidences(Tallies.of(tally))[0])


def confidences(tallies: Tallies) -> FloatArray:
    """The confidence of each row; 0 where there are no votes."""
    model = universal_model(tallies.budget)
    found = np.empty(len(tallies))
    for draws, rows, places in locate(tallies, model):
        found[rows] = model.confidence[draws][places]
    # Without votes there is no leader, though nobody can take the lead from none once the budget is spent.
    return np.where((tallies.top(1)[:, 0] > 0) | (tallies.draws == tallies.budget), found, 0)


def locate(tallies: Tallies, model: Model) -> Iterator[tuple[int, IntArray, IntArray]]:
    """By number of draws: the rows that have so many, and where their partitions are in the model's level.

    The partition is one of draws: each none is a part of size 1 of its own, behind the answers that have votes.
    """
    votes = tallies.votes
    answers, none = (votes > 0).sum(axis=1), tallies.draws - votes.sum(axis=1)
    places = np.arange(tallies.budget)
    single = (places >= answers[:, None]) & (places < (answers + none)[:, None])
    keys = partition_keys(np.where(single, 1, votes))
    for draws in np.unique(tallies.draws):
        rows = np.flatnonzero(tallies.draws == draws)
        yield int(draws), rows, np.searchsorted(model.levels[draws].keys, keys[rows])
