"""The model of answers: a Pitman–Yor process whose two parameters are unknown, and the confidence that follows.

After n votes over k answers, an answer with c votes comes next with probability (c − d)/(n + α) and a new one with
(α + k d)/(n + α). A prior over (α, d) is updated by Bayes' rule from the partition, so that all depends on it alone.
What takes long to work out is kept in the user's cache directory.
"""

import hashlib
import os
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy

from suffice.errors import OptionError
from suffice.paths import write_whole
from suffice.planning.tables import Cache, Level, Table, levels
from suffice.tally import FloatArray, IntArray

CONCENTRATIONS = np.geomspace(0.02, 60, 22)
DISCOUNTS = np.arange(10) / 10
STEPS_AT_ONCE = 100_000

EXACT_BUDGET = 48
"""Beyond this there are too many partitions to go over them all: what is told is approximate."""

LARGEST_BUDGET = 512


@dataclass(frozen=True)
class Prior:
    """Weights of the points (α, d) of the grid, concentration by concentration; equal ones unless fitted."""

    weights: tuple[float, ...] = (1 / 220,) * 220
    passing: bool = field(default=False, repr=False, compare=False)
    """Whether it was learned from traffic, to be replaced soon: then nothing that follows from it is kept on disk."""
    tables: Cache[int, Table] = field(default_factory=lambda: Cache(8), init=False, repr=False, compare=False)
    """The confidence under it, by budget: gone when it is."""
    certainties: Cache[tuple[int, ...], float] = field(
        default_factory=lambda: Cache(65_536), init=False, repr=False, compare=False
    )

    @property
    def grid(self) -> FloatArray:
        """The weights with a row a concentration and a column a discount."""
        return np.reshape(self.weights, (len(CONCENTRATIONS), len(DISCOUNTS)))


UNIVERSAL = Prior()
"""No opinion: what is used unless a prior is fitted."""

_IS_SPREAD = np.repeat(CONCENTRATIONS >= 5, len(DISCOUNTS))
FIRST_SIGHT = Prior(tuple((_IS_SPREAD / _IS_SPREAD.sum()).tolist()))
"""For the certainty of traffic that was never seen: two responses agree in one case of six at most."""


def log_likelihood(parts: Sequence[int]) -> FloatArray:
    """The log probability of a partition, without zeros, at each point of the grid."""
    votes = sum(parts)
    terms = _terms(max(LARGEST_BUDGET, 1 << votes.bit_length()))
    grown = terms.growth[np.array(parts)].sum(axis=0)
    return terms.new_answers[len(parts)] - terms.total[votes][:, None] + grown


class _Terms(NamedTuple):
    """Sums that likelihoods are made of, for every number there may be: of answers, of votes, of an answer's votes."""

    new_answers: FloatArray
    total: FloatArray
    growth: FloatArray


@lru_cache(maxsize=2)
def _terms(most: int) -> _Terms:
    alpha, d = CONCENTRATIONS[:, None], DISCOUNTS[None, :]
    # Σ log(α + i d) over i = 1 … k − 1, and Σ log(α + i) over i = 1 … n − 1.
    steps = np.cumsum(np.log(alpha + d * np.arange(1, most)[:, None, None]), axis=0)
    votes = np.cumsum(np.log(CONCENTRATIONS + np.arange(1, most)[:, None]), axis=0)
    growth = scipy.special.gammaln(np.arange(most + 1)[:, None] - DISCOUNTS) - scipy.special.gammaln(1 - DISCOUNTS)
    growth[0] = 0
    return _Terms(
        np.concatenate([np.zeros((2, *steps.shape[1:])), steps]),
        np.concatenate([np.zeros((2, votes.shape[1])), votes]),
        growth,
    )


def step_probabilities(tree: list[Level], prior: Prior) -> list[FloatArray]:
    """The probability of each step of each level: a vote for any of the answers of its size, or for a new one."""
    alpha, sums = CONCENTRATIONS[:, None], _terms(LARGEST_BUDGET)
    found: list[FloatArray] = [np.ones(len(tree[0].parent))]
    # Of a partition's likelihood only Σ log Γ(c − d) depends on the sizes of its parts: it grows by one term a vote.
    grown = np.zeros((1, len(DISCOUNTS)))
    terms = np.log(np.maximum(np.arange(len(tree))[:, None], 1) - DISCOUNTS)
    terms[0] = 0
    for votes, (before, level) in enumerate(pairwise(tree), start=1):
        grown = grown[before.parent[level.origin]] + terms[before.size[level.origin]]
        answers = (level.parts > 0).sum(axis=1)
        # The rest is summed over the concentrations, once for every number of answers.
        with np.errstate(divide="ignore"):
            rest = sums.new_answers[: votes + 1] - sums.total[votes][:, None] + np.log(prior.grid)
        rest = np.exp(rest - rest.max(axis=(1, 2), keepdims=True))
        weights = np.exp(grown - grown.max(axis=1, keepdims=True))
        whole, pulled, fresh = (
            (weights * (rest * factor).sum(axis=1)[answers])
            for factor in (1, 1 / (votes + alpha), alpha / (votes + alpha))
        )
        scale = 1 / whole.sum(axis=1)
        pull, drag = pulled.sum(axis=1) * scale, pulled @ DISCOUNTS * scale
        novel = fresh.sum(axis=1) * scale + answers * drag
        # A vote for an answer with c votes has probability c·pull − drag, one for a new answer has `novel`.
        one_answer = level.size * pull[level.parent] - drag[level.parent]
        found.append(np.where(level.size == 0, novel[level.parent], level.count * one_answer))
    return found


def posterior(parts: Sequence[int], prior: Prior) -> FloatArray:
    """The weights of the grid's points once a partition has been seen."""
    with np.errstate(divide="ignore"):
        logs = log_likelihood(parts) + np.log(prior.grid)
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()


@dataclass(frozen=True)
class Model:
    """The process over a budget: for every level, the probability of each step and the leader's confidence."""

    budget: int
    levels: list[Level]
    probabilities: list[FloatArray]
    confidence: list[FloatArray]
    later: FloatArray | None = None
    """Where the levels end before the budget does: what is expected of the last one's partitions, a column for each
    draw after it."""


@lru_cache(maxsize=4)
def build_model(budget: int, prior: Prior = UNIVERSAL) -> Model:
    """Work out the process, forwards, and the confidence, backwards; or take them from the cache."""
    tree = levels(budget)

    def build() -> Arrays:
        chances = step_probabilities(tree, prior)
        # With the budget spent the leader is the reference, and nobody else is.
        confidence = confidence_before(tree, chances, np.ones(len(tree[-1].parts)))
        return {"probabilities": np.concatenate(chances), "confidence": np.concatenate(confidence)}

    arrays = cached(build, budget, prior, keep=not prior.passing)
    steps = np.cumsum([len(level.parent) for level in tree])[:-1]
    partitions = np.cumsum([len(level.parts) for level in tree])[:-1]
    return Model(budget, tree, np.split(arrays["probabilities"], steps), np.split(arrays["confidence"], partitions))


def confidence_before(
    tree: list[Level], probabilities: list[FloatArray], leading: FloatArray, trailing: FloatArray | None = None
) -> list[FloatArray]:
    """The probability that the leader is the reference, for each partition of each level.

    Backwards from the last level, where `leading` has it for the leader of each partition and `trailing` for an answer
    of each size that doesn't lead (0 unless given). In a tie the leader is who reached the count first, so the marked
    answer keeps the lead when another draws level, loses it when one that is level gets a vote, and takes it only by
    passing the leader.
    """
    confidence: list[FloatArray] = [leading]
    shape = (len(leading), len(tree))
    next_steps: IntArray = np.broadcast_to(np.int32(0), shape)
    if trailing is None:
        trailing = np.zeros(1)
    else:
        next_steps, trailing = np.arange(trailing.size, dtype=np.int32).reshape(shape), trailing.ravel()
    for level, chance in zip(tree[-2::-1], probabilities[-2::-1], strict=True):
        leading = confidence[0]
        one = chance / level.count
        top = level.parts[:, 0].astype(int)
        # The leader's own vote is among the votes for answers of its size.
        is_top = level.size == top[level.parent]
        others = np.where(is_top, chance - one, chance)
        lost = trailing[next_steps[level.child, top[level.parent]]]
        after = np.where(is_top, one * leading[level.child] + others * lost, chance * leading[level.child])
        kept: FloatArray = np.bincount(level.parent, after, minlength=len(level.parts)).astype(float)
        confidence.insert(0, kept)
        trailing = _trailing(level, chance, leading, trailing, next_steps)
        # The step for each partition and size of part, -1 where it has none.
        next_steps = np.full((len(level.parts), int(level.size.max()) + 1), -1, np.int32)
        next_steps[level.parent, level.size] = np.arange(len(level.parent))
    confidence[0] = np.zeros(1)  # no votes yet
    return confidence


def _trailing(
    level: Level, chance: FloatArray, leading: FloatArray, trailing: FloatArray, next_steps: IntArray
) -> FloatArray:
    """The probability that a marked answer that doesn't lead becomes the reference, by the step of its size."""
    one, kept = chance / level.count, np.empty(len(level.parent))
    first_step = np.searchsorted(level.parent, np.arange(len(level.parts) + 1))
    degree, first = np.diff(first_step)[level.parent], first_step[level.parent]
    for start in range(0, len(kept), STEPS_AT_ONCE):
        steps = slice(start, start + STEPS_AT_ONCE)
        # Every step of a marked answer's partition, its own among them, is a vote that may come next.
        row = np.repeat(np.arange(len(degree[steps])), degree[steps])
        vote = (
            np.arange(len(row)) - np.repeat(np.cumsum(degree[steps]) - degree[steps], degree[steps]) + first[steps][row]
        )
        elsewhere = chance[vote] - np.where(vote == row + start, one[vote], 0)
        stays = trailing[next_steps[level.child[vote], level.size[steps][row]]]
        kept[steps] = np.bincount(row, elsewhere * stays)
    passes = level.size == level.parts[level.parent, 0]
    grown = np.where(passes, leading[level.child], trailing[next_steps[level.child, level.size + 1]])
    return np.where(level.size == 0, 0, kept + one * grown)


VERSION = 2
"""Part of every file's name: raise it when the arrays change their meaning."""

MOST_BYTES = 500_000_000
"""The oldest files are deleted beyond this: a search for penalties leaves many that nobody needs again."""

Arrays = dict[str, np.ndarray]


def cached(build: Callable[[], Arrays], *identity: object, keep: bool = True) -> Arrays:
    """The arrays from the cache; where they aren't there, or aren't whole, they are built and, if they shall be, kept.

    Files are written whole under their final name, so that two processes at once do no harm.
    """
    if not keep:
        return build()
    name = hashlib.sha256(repr((VERSION, *identity)).encode()).hexdigest()[:24]
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "suffice"
    path = folder / f"model-{name}.npz"
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, SystemError):
        # A SystemError is Python 3.11's own, where two threads read the heads of arrays at the same moment.
        arrays: dict[str, Any] = build()
    data = BytesIO()
    np.savez(data, **arrays)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(path, data.getbuffer())
        _forget_the_oldest(folder)
    except (OSError, OptionError):
        pass  # a cache that can't be written is only slower
    return arrays


def _forget_the_oldest(folder: Path) -> None:
    files = sorted(folder.glob("model-*.npz"), key=lambda file: file.stat().st_mtime, reverse=True)
    kept = 0
    for file in files:
        kept += file.stat().st_size
        if kept > MOST_BYTES:
            file.unlink()
