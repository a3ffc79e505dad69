"""The best policy under the model: what each partition is worth, and how many more to draw there."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from suffice.penalties import Penalties
from suffice.planning.model import Model
from suffice.tally import FloatArray, IntArray

CLOSE = 1e-4
"""Among actions this close to the best the largest is taken: rounds are worth something even where they are free."""

EXACT = 1e-9
"""What rounding may hide: a stop that is as good as drawing on is taken."""


@dataclass(frozen=True)
class Policy:
    """For every level: how many more to draw at each partition, the same if stopping is barred, and its value."""

    asked: list[IntArray]
    asked_without_stop: list[IntArray]
    value: list[FloatArray]


def plan(model: Model, penalties: Penalties, actions: tuple[int, ...]) -> Policy:
    """Backwards from the full budget: V = max(2·confidence − 1, max over k of −costs + E[V after k more])."""
    actions = tuple({min(action, model.budget) for action in actions})
    asked: list[IntArray] = [np.zeros(len(model.levels[-1].parts), np.int8)]
    without_stop: list[IntArray] = [asked[0]]
    value: list[FloatArray] = [2 * model.confidence[-1] - 1]
    # Column j: the expected value after j more votes.
    ahead = np.zeros((len(value[0]), max(actions) + 1))
    ahead[:, 0] = value[0]
    for votes in range(model.budget - 1, -1, -1):
        level = model.levels[votes]
        shape = (len(level.parts), len(model.levels[votes + 1].parts))
        step = csr_array((model.probabilities[votes], (level.parent, level.child)), shape=shape)
        ahead = np.column_stack([np.zeros(shape[0]), step @ ahead[:, :-1]])
        draws = np.unique(np.minimum(actions, model.budget - votes))
        worth = ahead[:, draws] - penalties.round - penalties.draw * draws
        best = worth.max(axis=1)
        largest = np.where(worth >= best[:, None] - CLOSE, draws, 0).max(axis=1)
        stop = 2 * model.confidence[votes] - 1
        stops = (stop >= best - EXACT) & (votes > 0)
        asked.insert(0, np.where(stops, 0, largest).astype(np.int8))
        without_stop.insert(0, largest.astype(np.int8))
        value.insert(0, np.where(stops, stop, best))
        ahead[:, 0] = value[0]
    return Policy(asked, without_stop, value)
