"""The published rules with a test in closed form: asking once, SC, ASC, ESC and its_hub's doubling."""

from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np
import scipy

from suffice.controllers.base import ArrayController
from suffice.controllers.registry import register
from suffice.tally import NONE, FloatArray, IntArray, Tallies


@register("once")
@dataclass(frozen=True)
class Once(ArrayController):
    """One draw and no vote: what everybody compares with."""

    def decide_many(self, tallies: Tallies) -> IntArray:
        """The one that there is."""
        return np.where(tallies.draws == 0, 1, 0)


@register("sc")
@dataclass(frozen=True)
class SelfConsistency(ArrayController):
    """Self-consistency (Wang et al., 2022): one round of `draws` (the budget unless given), then stop."""

    needs_rounds: ClassVar[bool] = True

    draws: int | None = None

    def __post_init__(self) -> None:
        self.require("draws", self.draws is None or self.draws >= 1, "at least 1")

    def decide_many(self, tallies: Tallies) -> IntArray:
        """Everything at once."""
        return np.where(tallies.draws == 0, min(self.draws or tallies.budget, tallies.budget), 0)


@register("asc")
@dataclass(frozen=True)
class AdaptiveSelfConsistency(ArrayController):
    """Adaptive self-consistency (Aggarwal et al., 2023): one draw a round, until the leader surely beats the second.

    Sure means that P(leader's share > runner-up's share), under the Beta posterior of the two, reaches `threshold`.
    """

    threshold: float = 0.95

    def __post_init__(self) -> None:
        self.require("threshold", 0 < self.threshold <= 1, "above 0 and at most 1")

    def decide_many(self, tallies: Tallies) -> IntArray:
        """One more until sure."""
        first, second = tallies.top(2).T
        sure = lead_probabilities(tallies.budget)[first, second] >= self.threshold
        return np.where(sure & (first > 0), 0, 1)


@cache
def lead_probabilities(budget: int) -> FloatArray:
    """P(the first's share > the second's) by their votes a and b: 1 − I_½(a+1, b+1), which is I_½(b+1, a+1)."""
    first, second = np.ogrid[: budget + 1, : budget + 1]
    return scipy.special.betainc(second + 1, first + 1, 0.5)


@register("esc")
@dataclass(frozen=True)
class EarlyStoppingSelfConsistency(ArrayController):
    """Early-stopping self-consistency (Li et al., 2024): windows of `window` draws, until one is unanimous."""

    needs_rounds: ClassVar[bool] = True

    window: int = 5

    def __post_init__(self) -> None:
        self.require("window", self.window >= 1, "at least 1")

    def decide_many(self, tallies: Tallies) -> IntArray:
        """Fill the window under way; judge it when it is full."""
        size = min(self.window, tallies.budget)
        into_window = tallies.draws % size
        window = tallies.last(size)
        unanimous = (window == window[:, :1]).all(axis=1) & (window[:, 0] != NONE)
        return np.where((into_window == 0) & unanimous, 0, size - into_window)


@register("doubling")
@dataclass(frozen=True)
class Doubling(ArrayController):
    """its_hub's adaptive self-consistency: 2 draws, then as many again as there are, until the leader dominates.

    To dominate is to have at least `threshold` of the answers given.
    """

    needs_rounds: ClassVar[bool] = True

    threshold: float = 0.75

    def __post_init__(self) -> None:
        self.require("threshold", 0 < self.threshold <= 1, "above 0 and at most 1")

    def decide_many(self, tallies: Tallies) -> IntArray:
        """Double until the leader dominates."""
        leader, given = tallies.votes[:, 0], tallies.votes.sum(axis=1)
        dominates = leader / np.maximum(given, 1) >= self.threshold
        return np.where(dominates, 0, np.maximum(tallies.draws, 2))
