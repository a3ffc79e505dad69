"""The best policy under the model: what each partition is worth, and how many more to draw there."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from suffice.penalties import Penalties
from suffice.planning.model import Model
from suffice.planning.partitions import Level
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


def plan(model: Model, penalties: Penalties, actions: tuple[int, ...], fewest: int = 1) -> Policy:
    """Backwards from the full budget; with fewer draws than `fewest` it doesn't stop."""
    nothing = np.zeros((len(model.levels[-1].parts), 0))
    return plan_before(
        model.levels, model.probabilities, model.confidence, nothing, model.budget, penalties, actions, fewest
    )


def plan_before(
    levels: list[Level],
    probabilities: list[FloatArray],
    confidence: list[FloatArray],
    later: FloatArray,
    budget: int,
    penalties: Penalties,
    actions: tuple[int, ...],
    fewest: int = 1,
) -> Policy:
    """V = max(2·confidence − 1, max over k of −costs + E[V after k more]), backwards from the last level.

    `later` has a column for each draw after that level: what is expected of its partitions then.
    """
    last = len(levels) - 1
    asked: list[IntArray] = []
    without_stop: list[IntArray] = []
    value: list[FloatArray] = []
    # Column j: the expected value after j more votes.
    ahead = np.zeros((len(levels[-1].parts), max(min(action, budget) for action in actions) + 1))
    ahead[:, 1 : later.shape[1] + 1] = later
    for votes in range(last, -1, -1):
        level = levels[votes]
        if votes < last:
            shape = (len(level.parts), len(levels[votes + 1].parts))
            step = csr_array((probabilities[votes], (level.parent, level.child)), shape=shape)
            ahead = np.column_stack([np.zeros(shape[0]), step @ ahead[:, :-1]])
        stop = 2 * confidence[votes] - 1
        draws = np.unique(np.minimum(actions, budget - votes))
        worth = ahead[:, draws] - penalties.round - penalties.draw * draws
        best = worth.max(axis=1)
        largest = np.where(worth >= best[:, None] - CLOSE, draws, 0).max(axis=1)
        stops = ((stop >= best - EXACT) & (votes >= fewest)) | (votes == budget)
        asked.insert(0, np.where(stops, 0, largest).astype(np.int16))
        without_stop.insert(0, largest.astype(np.int16))
        value.insert(0, np.where(stops, stop, best))
        ahead[:, 0] = value[0]
    return Policy(asked, without_stop, value)
