"""The best policy under the model: what each partition is worth, and how many more to draw there."""

from dataclasses import dataclass

import numpy as np
import scipy

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

    @property
    def columns(self) -> dict[str, IntArray]:
        return {name: np.concatenate(getattr(self, name)) for name in ("asked", "asked_without_stop")}


@dataclass(frozen=True)
class Worths:
    """What stopping and each number of draws are worth in states that have the same number of votes."""

    draws: IntArray
    stopping: FloatArray
    drawing: FloatArray
    """A column for each of `draws`."""
    must_draw: bool = False

    @property
    def stops(self) -> np.ndarray:
        return (self.stopping >= self.drawing.max(axis=1) - EXACT) & (not self.must_draw)

    @property
    def asked_without_stop(self) -> IntArray:
        """How many more to draw in each state, if stopping is barred."""
        close = self.drawing >= self.drawing.max(axis=1, keepdims=True) - CLOSE
        return np.where(close, self.draws, 0).max(axis=1)

    @property
    def asked(self) -> IntArray:
        """How many more to draw in each state; 0 stops."""
        return np.where(self.stops, 0, self.asked_without_stop)

    @property
    def value(self) -> FloatArray:
        return np.where(self.stops, self.stopping, self.drawing.max(axis=1))


def plan(model: Model, penalties: Penalties, actions: tuple[int, ...], fewest: int = 1) -> Policy:
    """The policy of all levels, backwards from the last; with fewer draws than `fewest` it doesn't stop.

    V = max(2·confidence − 1, max over k of −costs + E[V after k more]).
    """
    levels, budget, last = model.levels, model.budget, len(model.levels) - 1
    policy = Policy([], [], [])
    # Column j: the expected value after j more votes.
    ahead = np.zeros((len(levels[-1].parts), max(min(action, budget) for action in actions) + 1))
    if model.later is not None:
        ahead[:, 1 : model.later.shape[1] + 1] = model.later
    for votes in range(last, -1, -1):
        level = levels[votes]
        if votes < last:
            shape = (len(level.parts), len(levels[votes + 1].parts))
            step = scipy.sparse.csr_array((model.probabilities[votes], (level.parent, level.child)), shape=shape)
            ahead = np.column_stack([np.zeros(shape[0]), step @ ahead[:, :-1]])
        draws = np.unique(np.minimum(actions, budget - votes))
        drawing = ahead[:, draws] - penalties.round - penalties.draw * draws
        worths = Worths(draws, 2 * model.confidence[votes] - 1, drawing, must_draw=votes < min(fewest, budget))
        policy.asked.insert(0, worths.asked.astype(np.int16))
        policy.asked_without_stop.insert(0, worths.asked_without_stop.astype(np.int16))
        policy.value.insert(0, worths.value)
        ahead[:, 0] = worths.value
    return policy
