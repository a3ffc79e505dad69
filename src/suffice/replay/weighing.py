"""Learning an election's weights from pools, and what they gain where they were not learned."""

import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version

import numpy as np

from suffice.controllers import Controller, get_controller
from suffice.elections import Election, LearnedWeights, Majority, check_signals
from suffice.elections.election import signal_of
from suffice.elections.learned import common_signals, fit_strengths
from suffice.errors import OptionError, PoolError
from suffice.pools import AnyPool, Pool, Question, check_draws, draw_episodes, get_pools
from suffice.replay.compare import Difference, paired
from suffice.replay.evaluate import DEFAULT_REPEATS
from suffice.replay.run import replay
from suffice.tally import DEFAULT_BUDGET, FloatArray

FOLDS = 5


@dataclass(frozen=True)
class Tried:
    """One pool: the accuracy of each question in percent, by the plain vote and by weights not learned from it."""

    pool: str
    plain: FloatArray
    weighed: FloatArray

    @property
    def gain(self) -> Difference:
        return paired([self.weighed - self.plain]) or NOTHING


@dataclass(frozen=True)
class Weighed:
    """Learned weights, and what they gain over the plain vote: points of accuracy, cross-validated, pool by pool.

    Where no question has a gold answer, accuracy is agreement with the majority of all of a question's responses.
    """

    weights: LearnedWeights
    gain: Difference
    tried: list[Tried]

    @property
    def is_safe(self) -> bool:
        """Whether the gain has an interval, and it stays at 0 or above."""
        return self.gain.low is not None and self.gain.low >= 0


NOTHING = Difference(0.0, 0.0, 0.0)


def weigh(
    pools: AnyPool | Sequence[AnyPool],
    *,
    signals: Sequence[str] = (),
    no_gold: bool = False,
    budget: int = DEFAULT_BUDGET,
    repeats: int = DEFAULT_REPEATS,
    seed: int = 0,
) -> Weighed:
    """Learn the weights of these signals, or of all that the pools share, from gold answers or from the majority.

    The gain is at the full budget and cross-validated: each fifth of a pool's questions is elected by weights learned
    from the other fifths, and where there are several pools, from those of the other pools alone.

    >>> found = weigh("qwen2.5-coder-0.5b__gsm8k", signals=["tail"], repeats=5)
    >>> found.weights.signals, found.gain.low < found.gain.mean < found.gain.high
    (('tail',), True)
    """
    loaded = get_pools(pools)
    names = tuple(signals or common_signals(loaded))
    _check(loaded, names, budget, repeats, seed)
    by_gold = any(question.gold is not None for pool in loaded for question in pool)
    taught = [pool.with_majorities() if no_gold else pool for pool in loaded]
    strengths = _strengths([question for pool in taught for question in pool], names)
    if np.isnan(strengths).any():
        hint = "" if no_gold else ", or learn from the majority"
        raise PoolError(f"there is nothing to learn from: no question has right and wrong answers; add others{hint}")
    tried = []
    for place, pool in enumerate(loaded):
        teachers = [other for number, other in enumerate(taught) if number != place] or taught
        lessons = [question for other in teachers for question in other]
        judged = pool if by_gold else pool.with_majorities()
        tried.append(_try(judged, lessons, names, budget, repeats, seed))
    gain = paired([one.weighed - one.plain for one in tried]) or NOTHING
    card = {
        "signals": list(names),
        "strengths": dict(zip(names, strengths.tolist(), strict=True)),
        **_usual(loaded, names),
        "learned_from": "majority" if no_gold else "gold",
        "pools": [{"name": pool.name, "sha256": pool.sha256} for pool in loaded],
        "gain": asdict(gain),
        "gain_by_pool": {one.pool: asdict(one.gain) for one in tried},
        "gain_of": "accuracy" if by_gold else "agreement with the majority of all responses",
        "budget": budget,
        "repeats": repeats,
        "seed": seed,
        "versions": {"suffice": version("suffice")},
    }
    return Weighed(LearnedWeights(names, tuple(strengths.tolist()), card), gain, tried)


def _check(pools: Sequence[Pool], names: Sequence[str], budget: int, repeats: int, seed: int) -> None:
    if not names:
        raise PoolError(f"{', '.join(pool.name for pool in pools)}: there is no signal, nor length, that all have")
    if len(set(names)) < len(names):
        raise OptionError(f"must differ, and {', '.join(names)} don't", "signal")
    for pool in pools:
        check_draws(pool, budget, repeats, seed)
        check_signals(LearnedWeights(tuple(names)), pool)


def _strengths(questions: Sequence[Question], names: Sequence[str]) -> FloatArray:
    return fit_strengths(questions, [question.gold for question in questions], names)


def _try(
    pool: Pool, lessons: Sequence[Question], names: tuple[str, ...], budget: int, repeats: int, seed: int
) -> Tried:
    """Elect each fold of a pool's questions by what the lessons in the other folds teach."""
    folds = np.array([_fold(question) for question in pool])
    full = get_controller(f"sc:draws={budget}")
    plain, weighed = np.full((2, len(folds)), np.nan)
    for fold in np.unique(folds):
        places = np.flatnonzero(folds == fold)
        learned = _strengths([question for question in lessons if _fold(question) != fold], names)
        weights = LearnedWeights(names, tuple(np.nan_to_num(learned).tolist()))
        tested = Pool(pool.name, tuple(pool.questions[place] for place in places))
        _, (plain[places], weighed[places]) = accuracies(tested, full, [Majority(), weights], budget, repeats, seed)
    return Tried(pool.name, plain, weighed)


def _fold(question: Question) -> int:
    """By the id, so that a question is in the same fold in every pool."""
    return zlib.crc32(question.id.encode("utf-8", "surrogatepass")) % FOLDS


def accuracies(
    pool: Pool, stop: Controller, elections: Sequence[Election], budget: int, repeats: int, seed: int
) -> tuple[float, list[FloatArray]]:
    """The mean samples at a controller's stops and, for each election there, the accuracy of each question."""
    samples, right = [], []
    for episodes in draw_episodes(pool, budget, repeats, seed):
        outcomes = replay(episodes, stop)
        given = [outcomes.elected(election).right for election in elections]
        right.append(100 * np.array(given).reshape(len(given), -1, repeats).mean(axis=2))
        samples.append(outcomes.samples)
    return float(np.concatenate(samples).mean()), [*np.concatenate(right, axis=1)]


def _usual(pools: Sequence[Pool], names: Sequence[str]) -> dict[str, dict[str, float]]:
    """The mean of each signal and how much it varies within a question, for the reader of a card."""
    means, deviations = {}, {}
    for name in names:
        columns = [
            signal_of(name, question.signal_values, question.lengths) for pool in pools for question in pool.questions
        ]
        known = [column[~np.isnan(column)] for column in columns if not np.isnan(column).all()]
        means[name] = float(np.mean([column.mean() for column in known]))
        deviations[name] = float(np.mean([column.std() for column in known]))
    return {"means": means, "deviations": deviations}
