"""Approximate plans, for budgets with too many partitions: exact to begin with, then by regression on episodes.

For the first draws every partition is gone over, as in an exact plan. From there on a state is the three largest
counts; what is expected of it is fitted, backwards from the budget, to episodes drawn from the same model of answers.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy

from suffice.penalties import Penalties
from suffice.planning.cache import Arrays, cached
from suffice.planning.model import Model, Prior, build_model, confidence_before
from suffice.planning.regression import CELLS, Basis, Regression
from suffice.planning.simulation import simulate
from suffice.planning.tables import LargeTable, Table, levels
from suffice.planning.values import CLOSE, EXACT, plan
from suffice.tally import FloatArray, IntArray

MOST_EPISODES, LEAST_EPISODES = 200_000, 60_000
MOST_DRAWS = 16_000_000
"""Draws that are simulated: there are fewer episodes for larger budgets, down to the least that fits are good with."""

SMALLEST_PART = 16
"""After the first draws a round adds this part of those since: of many small steps the errors of the fits add up."""


def exact_draws(budget: int) -> int:
    """So many draws are planned by partition."""
    return min(32, budget * 2 // 3)


@dataclass(frozen=True)
class EpisodeStates:
    """Simulated episodes after so many draws: the states that occur, how often, whose, and how often leaders stay."""

    budget: int
    draws: int
    top: IntArray
    counts: FloatArray
    state: IntArray
    agrees: FloatArray

    def regression(self) -> Regression:
        """Fits to the states; not kept, since it is large."""
        return Regression(Basis.of(self.top, self.draws, self.budget), self.counts)

    def means(self, values: FloatArray) -> FloatArray:
        """The mean in each state of a value for each episode."""
        return np.bincount(self.state, values, minlength=len(self.counts)) / self.counts


@lru_cache(maxsize=1)
def _moments(budget: int, prior: Prior) -> list[EpisodeStates]:
    """Simulated episodes after each draw, from the last that is exact to the last but one."""
    first = exact_draws(budget)
    episodes = max(LEAST_EPISODES, min(MOST_EPISODES, MOST_DRAWS // budget))
    tops, leaders = [], []
    for step in simulate(prior, budget, episodes):
        if step.draws >= first:
            tops.append(step.top.T.copy())
            leaders.append(step.leader.copy())
    agree = [leader == leaders[-1] for leader in leaders[:-1]]
    return [_moment(first + later, budget, tops[later], agrees) for later, agrees in enumerate(agree)]


def _moment(draws: int, budget: int, top: IntArray, agrees: np.ndarray) -> EpisodeStates:
    packed = (top.astype(np.int64) * [1 << 20, 1 << 10, 1]).sum(axis=1)
    kept, state, counts = np.unique(packed, return_inverse=True, return_counts=True)
    states = np.stack([kept >> 20, kept >> 10 & 1023, kept & 1023], axis=1)
    stays = np.bincount(state, agrees) / counts
    return EpisodeStates(budget, draws, states.astype(np.int16), counts.astype(float), state.astype(np.int32), stays)


@dataclass(frozen=True)
class Fitted:
    """Coefficients after each number of draws from the first on, a column for each thing that is expected."""

    budget: int
    coefficients: FloatArray

    @property
    def first(self) -> int:
        """From so many draws on."""
        return exact_draws(self.budget)

    def at(self, basis: Basis, draws: int) -> FloatArray:
        """What is expected of the states after so many draws, beyond a guess."""
        return basis.weights @ self.coefficients[draws - self.first]


def confidence_of(sure: Fitted, basis: Basis, draws: int) -> FloatArray:
    """The probability of each state's leader to be the reference."""
    return np.where(basis.settled, 1, np.clip(basis.guess + sure.at(basis, draws)[:, 0], 0, 1))


def first_confidences(sure: Fitted, prior: Prior) -> list[FloatArray]:
    """The confidence of every partition of the first draws: by exact steps, from what is fitted where they end."""
    model = build_model(sure.first, prior)
    parts = model.levels[-1].parts.astype(int)
    leading = confidence_of(sure, Basis.of(parts[:, :3], sure.first, sure.budget), sure.first)
    # Who else may be the reference: each by how likely it is to pass the leader.
    sizes = np.arange(sure.first + 1)
    behind = np.maximum(parts[:, :1] - sizes, 0) / np.sqrt(parts[:, :1] + sizes)
    passes = scipy.special.ndtr(-behind * np.sqrt(sure.budget / (sure.budget - sure.first)))
    others = np.where(parts[:, 1:] > 0, np.take_along_axis(passes, parts[:, 1:], axis=1), 0).sum(axis=1)
    trailing = passes * np.divide(1 - leading, others, out=np.zeros(len(parts)), where=others > 0)[:, None]
    return confidence_before(model.levels, model.probabilities, leading, np.minimum(trailing, 1))


def fit_model(sure: Fitted, prior: Prior, penalties: Penalties, actions: tuple[int, ...]) -> tuple[Model, Fitted]:
    """The model of the first draws, by partition, and after them what is expected of each action, by state."""
    budget, first, moments = sure.budget, sure.first, _moments(sure.budget, prior)
    later = Fitted(budget, np.zeros((len(moments), CELLS, len(actions)), np.float32))
    values: dict[int, FloatArray] = {budget: np.ones(len(moments[0].state))}

    def after(moment: EpisodeStates, draws: int) -> FloatArray:
        """The mean value in each state of a moment after so many draws more."""
        return moment.means(values[min(moment.draws + draws, budget)])

    for moment in reversed(moments):
        expected = [after(moment, action) for action in actions]
        regression = moment.regression()
        later.coefficients[moment.draws - first] = regression.fit(expected, 2 * regression.basis.guess - 1)
        best = decide(sure, later, regression.basis, moment.draws, penalties, actions)
        values[moment.draws] = best.value[moment.state]
        values.pop(moment.draws + max(actions) + 1, None)
    model, start = build_model(first, prior), moments[0]
    reach = range(1, min(max(actions), budget - first) + 1)
    regression = start.regression()
    fit = regression.fit([after(start, draws) for draws in reach], 2 * regression.basis.guess - 1)
    basis = Basis.of(model.levels[-1].parts[:, :3], first, budget)
    ahead = np.minimum(2 * basis.guess[:, None] - 1 + basis.weights @ fit, 1)
    confidence = first_confidences(sure, prior)
    return Model(budget, model.levels, model.probabilities, confidence, ahead), later


@dataclass(frozen=True)
class Decisions:
    """For each state: how many more to draw, the same if stopping is barred, and what it is worth."""

    asked: IntArray
    asked_without_stop: IntArray
    value: FloatArray


def decide(
    sure: Fitted, later: Fitted, basis: Basis, draws: int, penalties: Penalties, actions: tuple[int, ...]
) -> Decisions:
    """The better of stopping and of the action that is worth most."""
    asked = np.minimum(actions, later.budget - draws)
    worth = drawing_worths(later, basis, draws, penalties, actions)
    best = worth.max(axis=1)
    largest = np.where(worth >= best[:, None] - CLOSE, asked, 0).max(axis=1)
    stop = 2 * confidence_of(sure, basis, draws) - 1
    stops = stop >= best - EXACT
    return Decisions(np.where(stops, 0, largest), largest, np.where(stops, stop, best))


def drawing_worths(
    later: Fitted, basis: Basis, draws: int, penalties: Penalties, actions: tuple[int, ...]
) -> FloatArray:
    """What each action is worth in each state, a column each."""
    asked = np.minimum(actions, later.budget - draws)
    expected = np.minimum(2 * basis.guess[:, None] - 1 + later.at(basis, draws), 1)
    small = np.array(actions) < min((draws - later.first) // SMALLEST_PART, max(actions))
    return expected - penalties.round - penalties.draw * asked - np.where(small, np.inf, 0)


def confidence_table(budget: int, prior: Prior) -> LargeTable:
    """The confidence for every tally of a large budget."""
    arrays = cached_confidence(budget, prior)
    sure = Fitted(budget, arrays["fit"])

    def later(column: str, top: IntArray, draws: int) -> np.ndarray:
        if draws == budget:
            return np.ones(len(top))
        return confidence_of(sure, Basis.of(top, draws, budget), draws)

    return LargeTable(Table.of(levels(sure.first), confidence=arrays["first"]), later)


def plan_table(
    budget: int, prior: Prior, penalties: Penalties, actions: tuple[int, ...], fewest: int = 1
) -> LargeTable:
    """The decisions for every tally of a large budget."""
    sure = Fitted(budget, cached_confidence(budget, prior)["fit"])

    def build() -> Arrays:
        model, later = fit_model(sure, prior, penalties, actions)
        policy = plan(model, penalties, actions, fewest)
        return {**policy.columns, "fit": later.coefficients}

    arrays = cached(build, "approximate plan", budget, prior, penalties, actions, fewest, keep=not prior.passing)
    fitted = Fitted(budget, arrays.pop("fit"))

    def later(column: str, top: IntArray, draws: int) -> np.ndarray:
        if draws == budget:
            return np.zeros(len(top), np.int16)
        decisions = decide(sure, fitted, Basis.of(top, draws, budget), draws, penalties, actions)
        return decisions.asked if column == "asked" else decisions.asked_without_stop

    return LargeTable(Table.of(levels(sure.first), **arrays), later)


def cached_confidence(budget: int, prior: Prior) -> Arrays:
    """The confidence of a large budget: `fit`, its coefficients, and `first`, by partition of the first draws."""

    def build() -> Arrays:
        fits = []
        for moment in _moments(budget, prior):
            regression = moment.regression()
            fits.append(regression.fit([moment.agrees], regression.basis.guess))
        sure = Fitted(budget, np.array(fits, np.float32))
        return {"fit": sure.coefficients, "first": np.concatenate(first_confidences(sure, prior))}

    return cached(build, "approximate confidence", budget, prior, keep=not prior.passing)
