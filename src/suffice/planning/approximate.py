"""Approximate plans, for budgets with too many partitions: exact to begin with, then by regression on episodes.

For the first draws every partition is gone over, as in an exact plan. From there on a state is the three largest
counts; what is expected of it is fitted, backwards from the budget, to episodes drawn from the same model of answers.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import scipy

from suffice.penalties import Penalties
from suffice.planning.model import (
    CONCENTRATIONS,
    DISCOUNTS,
    Arrays,
    Model,
    Prior,
    build_model,
    cached,
    confidence_before,
)
from suffice.planning.tables import SIZE_KEYS, Table, levels
from suffice.planning.values import Worths, plan
from suffice.tally import FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True)
class Step:
    """Many episodes after the same number of draws: the last answer, the 3 largest counts, the leader, the keys."""

    draws: int
    answer: IntArray
    top: IntArray
    leader: IntArray
    keys: np.ndarray


def simulate(prior: Prior, budget: int, episodes: int, seed: int = 0) -> Iterator[Step]:
    """The episodes after each draw, in step; the arrays are overwritten by the next step, but for the answer.

    A draw of before is chosen, and its answer comes again unless, by d in c, it is a new one after all: that makes
    (c − d)/(n + α) for an answer with c votes.
    """
    random = np.random.default_rng(seed)
    # As many at each point of the grid as its weight says, so that chance has less to do.
    ends = np.cumsum(prior.weights)
    points = np.searchsorted(ends / ends[-1], (np.arange(episodes) + 0.5) / episodes)
    alpha, discount = CONCENTRATIONS[points // len(DISCOUNTS)], DISCOUNTS[points % len(DISCOUNTS)]
    every = np.arange(episodes)
    answers = np.zeros((budget, episodes), np.int16)
    votes = np.zeros((budget + 1) * episodes, np.int16)
    at_least = np.zeros((budget + 2) * episodes, np.int16)
    known, leader = np.zeros(episodes, np.int16), np.zeros(episodes, np.int16)
    top, keys = np.zeros((3, episodes), np.int16), np.zeros(episodes, np.uint64)
    for draws in range(budget):
        chosen = random.random(episodes) * (draws + alpha)
        place = np.minimum(chosen.astype(np.int64), max(draws - 1, 0))
        again = answers[place, every]
        # The fraction is a chance of its own.
        new = (chosen >= draws) | ((chosen - place) * votes[again * np.int64(episodes) + every] < discount)
        answer = np.where(new, known, again)
        known += new
        answers[draws] = answer
        there = answer * np.int64(episodes) + every
        count = votes[there] + np.int16(1)
        votes[there] = count
        level = count * np.int64(episodes) + every
        rank = at_least[level]
        at_least[level] = rank + 1
        for place_at_top in range(3):
            np.copyto(top[place_at_top], count, where=rank == place_at_top)
        keys += SIZE_KEYS[count] - SIZE_KEYS[count - 1]
        np.copyto(leader, answer, where=rank == 0)
        yield Step(draws + 1, answer, top, leader, keys)


MOST_EPISODES, LEAST_EPISODES = 200_000, 60_000
MOST_DRAWS = 16_000_000
"""Draws that are simulated: there are fewer episodes for larger budgets, down to the least that fits are good with."""

SMALLEST_PART = 16
"""After the first draws a round adds this part of those since: of many small steps the errors of the fits add up."""

AHEAD = np.array([0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4])
FURTHER = np.array([0, 0.5, 1.2, 2.2, 4])
SHARE = np.array([0.05, 0.15, 0.3, 0.5, 0.8])
KNOTS = (AHEAD, FURTHER, SHARE)
CELLS = len(AHEAD) * len(FURTHER) * len(SHARE)

PULL = 1.0
"""How many episodes' worth a cell is pulled to the first guess: where there are none, that is all there is."""


def exact_draws(budget: int) -> int:
    """The number of draws that are planned by partition."""
    return min(32, budget * 2 // 3)


@dataclass(frozen=True)
class Basis:
    """States after so many draws of a budget: the weights of the cells around each, and a guess of the confidence."""

    budget: int
    draws: int
    weights: "csr_array"
    guess: FloatArray
    settled: np.ndarray

    @classmethod
    def of(cls, top: IntArray, draws: int, budget: int) -> "Basis":
        """For rows of the three largest counts.

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
        guess = scipy.special.ndtr(ahead) * scipy.special.ndtr(further)
        return cls(budget, draws, spread, guess, first - second >= budget - draws)

    def fitted(self, coefficients: FloatArray) -> FloatArray:
        """What is expected beyond a guess, by coefficients for each number of draws from the last exact one on."""
        return self.weights @ coefficients[self.draws - exact_draws(self.budget)]

    def confidence(self, sure: FloatArray) -> FloatArray:
        return np.where(self.settled, 1, np.clip(self.guess + self.fitted(sure)[:, 0], 0, 1))


@dataclass(frozen=True)
class EpisodeStates:
    """Simulated episodes after so many draws: the states that occur, how often, whose, and how often leaders stay."""

    budget: int
    draws: int
    top: IntArray
    counts: FloatArray
    state: IntArray
    agrees: FloatArray

    def basis(self) -> Basis:
        """That of the states; not kept, since it is large."""
        return Basis.of(self.top, self.draws, self.budget)

    def means(self, values: FloatArray) -> FloatArray:
        """The mean in each state of a value for each episode."""
        return np.bincount(self.state, values, minlength=len(self.counts)) / self.counts

    def fit(self, basis: Basis, means: list[FloatArray], guess: FloatArray) -> FloatArray:
        """The coefficients, a column each, of how far some means over each state are from a guess: least squares."""
        from scipy.sparse.linalg import splu  # not before it is needed: it takes its time to load

        # A sparse factor takes one thread: small dense ones wait for each other's threads on a busy machine.
        weights = basis.weights.astype(float)
        gram = weights.T @ (weights * self.counts[:, None]) + PULL * scipy.sparse.eye_array(CELLS)
        # Cells that share a state are near each other in number: in that order, without pivots, the factor is small.
        factor = splu(gram.tocsc(), permc_spec="NATURAL", diag_pivot_thresh=0, options={"SymmetricMode": True})
        beyond = self.counts[:, None] * (np.column_stack(means) - guess[:, None])
        return factor.solve(basis.weights.T @ beyond)


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
    found = []
    for draws, (top, leader) in enumerate(zip(tops[:-1], leaders[:-1], strict=True), start=first):
        packed = (top.astype(np.int64) * [1 << 20, 1 << 10, 1]).sum(axis=1)
        kept, state, counts = np.unique(packed, return_inverse=True, return_counts=True)
        states = np.stack([kept >> 20, kept >> 10 & 1023, kept & 1023], axis=1).astype(np.int16)
        stays = np.bincount(state, leader == leaders[-1]) / counts
        found.append(EpisodeStates(budget, draws, states, counts.astype(float), state.astype(np.int32), stays))
    return found


def first_confidences(sure: FloatArray, budget: int, prior: Prior) -> list[FloatArray]:
    """The confidence of every partition of the first draws: by exact steps, from what is fitted where they end."""
    first = exact_draws(budget)
    model = build_model(first, prior)
    parts = model.levels[-1].parts.astype(int)
    leading = Basis.of(parts[:, :3], first, budget).confidence(sure)
    # Who else may be the reference: each by how likely it is to pass the leader.
    sizes = np.arange(first + 1)
    behind = np.maximum(parts[:, :1] - sizes, 0) / np.sqrt(parts[:, :1] + sizes)
    passes = scipy.special.ndtr(-behind * np.sqrt(budget / (budget - first)))
    others = np.where(parts[:, 1:] > 0, np.take_along_axis(passes, parts[:, 1:], axis=1), 0).sum(axis=1)
    trailing = passes * np.divide(1 - leading, others, out=np.zeros(len(parts)), where=others > 0)[:, None]
    return confidence_before(model.levels, model.probabilities, leading, np.minimum(trailing, 1))


def fit_model(
    sure: FloatArray, budget: int, prior: Prior, penalties: Penalties, actions: tuple[int, ...]
) -> tuple[Model, FloatArray]:
    """The model of the first draws, by partition, and after them the coefficients of what each action is worth."""
    first, moments = exact_draws(budget), _moments(budget, prior)
    later = np.zeros((len(moments), CELLS, len(actions)), np.float32)
    values: dict[int, FloatArray] = {budget: np.ones(len(moments[0].state))}

    def after(moment: EpisodeStates, draws: int) -> FloatArray:
        """The mean value in each state of a moment after so many draws more."""
        return moment.means(values[min(moment.draws + draws, budget)])

    for moment in reversed(moments):
        expected, basis = [after(moment, action) for action in actions], moment.basis()
        later[moment.draws - first] = moment.fit(basis, expected, 2 * basis.guess - 1)
        values[moment.draws] = state_worths(sure, later, basis, penalties, actions).value[moment.state]
        values.pop(moment.draws + max(actions) + 1, None)
    model, start = build_model(first, prior), moments[0]
    reach = range(1, min(max(actions), budget - first) + 1)
    basis = start.basis()
    fit = start.fit(basis, [after(start, draws) for draws in reach], 2 * basis.guess - 1)
    basis = Basis.of(model.levels[-1].parts[:, :3], first, budget)
    ahead = np.minimum(2 * basis.guess[:, None] - 1 + basis.weights @ fit, 1)
    return Model(budget, model.levels, model.probabilities, first_confidences(sure, budget, prior), ahead), later


def state_worths(
    sure: FloatArray, later: FloatArray, basis: Basis, penalties: Penalties, actions: tuple[int, ...]
) -> Worths:
    """What stopping and each action are worth in each state, by coefficients of the confidence and of the actions."""
    asked = np.minimum(actions, basis.budget - basis.draws)
    expected = np.minimum(2 * basis.guess[:, None] - 1 + basis.fitted(later), 1)
    small = np.array(actions) < min((basis.draws - exact_draws(basis.budget)) // SMALLEST_PART, max(actions))
    drawing = expected - penalties.round - penalties.draw * asked - np.where(small, np.inf, 0)
    return Worths(asked, 2 * basis.confidence(sure) - 1, drawing)


def confidence_table(budget: int, prior: Prior) -> Table:
    """The confidence for every tally of a large budget."""
    arrays = cached_confidence(budget, prior)

    def later(column: str, top: IntArray, draws: int) -> np.ndarray:
        if draws == budget:
            return np.ones(len(top))
        return Basis.of(top, draws, budget).confidence(arrays["fit"])

    return Table(levels(exact_draws(budget)), {"confidence": arrays["first"]}, later)


def plan_table(budget: int, prior: Prior, penalties: Penalties, actions: tuple[int, ...], fewest: int = 1) -> Table:
    """The decisions for every tally of a large budget."""
    sure = cached_confidence(budget, prior)["fit"]

    def build() -> Arrays:
        model, fit = fit_model(sure, budget, prior, penalties, actions)
        return {**plan(model, penalties, actions, fewest).columns, "fit": fit}

    arrays = cached(build, "approximate plan", budget, prior, penalties, actions, fewest, keep=not prior.passing)
    fit = arrays.pop("fit")

    def later(column: str, top: IntArray, draws: int) -> np.ndarray:
        if draws == budget:
            return np.zeros(len(top), np.int16)
        worths = state_worths(sure, fit, Basis.of(top, draws, budget), penalties, actions)
        return worths.asked if column == "asked" else worths.asked_without_stop

    return Table(levels(exact_draws(budget)), arrays, later)


def cached_confidence(budget: int, prior: Prior) -> Arrays:
    """The confidence of a large budget: `fit`, its coefficients, and `first`, by partition of the first draws."""

    def build() -> Arrays:
        fits = []
        for moment in _moments(budget, prior):
            basis = moment.basis()
            fits.append(moment.fit(basis, [moment.agrees], basis.guess))
        sure = np.array(fits, np.float32)
        return {"fit": sure, "first": np.concatenate(first_confidences(sure, budget, prior))}

    return cached(build, "approximate confidence", budget, prior, keep=not prior.passing)
