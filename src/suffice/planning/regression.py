"""What is expected of an episode by its three largest vote counts: a smooth function of how far the leader is ahead."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import scipy

from suffice.tally import FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array
    from scipy.sparse.linalg import SuperLU

AHEAD = np.array([0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4])
FURTHER = np.array([0, 0.5, 1.2, 2.2, 4])
SHARE = np.array([0.05, 0.15, 0.3, 0.5, 0.8])
KNOTS = (AHEAD, FURTHER, SHARE)
CELLS = len(AHEAD) * len(FURTHER) * len(SHARE)

PULL = 1.0
"""How many episodes' worth a cell is pulled to the first guess: where there are none, that is all there is."""


@dataclass(frozen=True)
class Basis:
    """States at one moment: the weights of the cells around each, and a guess that the leader is the reference."""

    weights: "csr_array"
    guess: FloatArray
    settled: np.ndarray

    @classmethod
    def of(cls, top: IntArray, draws: int, budget: int) -> "Basis":
        """For rows of the three largest counts, after so many draws of a budget.

        Between two answers the lead at the end is about normal; in standard deviations it is expected to be
        (a − b) · √(N / ((N − n)(a + b))). The axes are that of the second, what the third adds, and the leader's share.
        """
        first, second, third = np.maximum(top, [1, 0, 0]).astype(float).T  # without votes there is nobody to lead
        scale = np.sqrt(budget / (budget - draws))
        ahead = scale * (first - second) / np.sqrt(first + second)
        further = scale * (first - third) / np.sqrt(first + third)
        cells, weights = np.zeros((len(first), 1), np.int32), np.ones((len(first), 1), np.float32)
        for axis, knots in zip((ahead, further - ahead, first / draws), KNOTS, strict=True):
            position = np.interp(axis, knots, np.arange(len(knots)))
            low = np.minimum(position.astype(np.int32), len(knots) - 2)
            high = (position - low).astype(np.float32)
            cells = np.concatenate([cells * len(knots) + low[:, None], cells * len(knots) + low[:, None] + 1], axis=1)
            weights = np.concatenate([weights * (1 - high)[:, None], weights * high[:, None]], axis=1)
        rows = np.arange(len(first) + 1, dtype=np.int32) * cells.shape[1]
        spread = scipy.sparse.csr_array((weights.ravel(), cells.ravel(), rows), shape=(len(first), CELLS))
        return cls(spread, scipy.special.ndtr(ahead) * scipy.special.ndtr(further), first - second >= budget - draws)


@dataclass(frozen=True)
class Regression:
    """Least squares over states that occur so many times; the equations are solved once for all that is fitted."""

    basis: Basis
    counts: FloatArray

    @cached_property
    def _factor(self) -> "SuperLU":
        # A sparse factor takes one thread: small dense ones wait for each other's threads on a busy machine.
        weights = self.basis.weights.astype(float)
        from scipy.sparse.linalg import splu  # not before it is needed: it takes its time to load

        gram = weights.T @ (weights * self.counts[:, None]) + PULL * scipy.sparse.eye_array(CELLS)
        # Cells that share a state are near each other in number: in that order, without pivots, the factor is small.
        return splu(gram.tocsc(), permc_spec="NATURAL", diag_pivot_thresh=0, options={"SymmetricMode": True})

    def fit(self, means: list[FloatArray], guess: FloatArray) -> FloatArray:
        """The coefficients, a column each, of how far some means over each state are from a guess."""
        beyond = self.counts[:, None] * (np.column_stack(means) - guess[:, None])
        return self._factor.solve(self.basis.weights.T @ beyond)
