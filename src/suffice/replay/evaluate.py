"""Figures for controllers on a pool, over shared draws, and what separates one from another."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from suffice.controllers import Controller, get_controller
from suffice.flow import Flow
from suffice.penalties import Penalties
from suffice.planning import LARGEST_BUDGET
from suffice.pools import Episodes, Pool, draw_episodes
from suffice.replay.reliability import DECILES, Reliability, decile_sums, pooled
from suffice.replay.run import Outcomes, replay, replay_clocked
from suffice.tally import FloatArray, Tally

METRICS = (
    "accuracy",
    "agreement",
    "rounds",
    "samples",
    "total_tokens",
    "sequential_tokens",
    "latency_tokens",
    "spent_tokens",
    "launched",
    "reward",
    "confidence",
    "share",
)
RESAMPLES = 1000


@dataclass(frozen=True)
class Result:
    """One controller on one pool, as means over questions and repeats; shares in percent.

    Accuracy is over the questions with a gold answer and token figures over those whose every response has a count;
    None where there are none. Confidence is None for a budget that is too large to tell it. `by_question` holds each
    metric's mean over the repeats, NaN where unknown.
    """

    pool: str
    controller: str
    questions: int
    accuracy: float | None
    agreement: float
    rounds: float
    samples: float
    total_tokens: float | None
    sequential_tokens: float | None
    latency_tokens: float | None
    spent_tokens: float | None
    launched: float
    reward: float
    confidence: float | None
    share: float
    reliability: Reliability | None = field(repr=False)
    by_question: Mapping[str, FloatArray] = field(repr=False, compare=False)


def evaluate(
    pool: Pool,
    controllers: str | Controller | Sequence[str | Controller],
    *,
    budget: int = 32,
    repeats: int = 100,
    seed: int = 0,
    penalties: Penalties = Penalties(),
    confidence: bool = True,
    flow: Flow | None = None,
    slots: int | None = None,
    progress: Callable[[int], None] = lambda questions: None,
) -> list[Result]:
    """Replay controllers over the same draws of a pool.

    `confidence=False` leaves it out, which is quicker. With `flow` there are no rounds: a decision on every arrival,
    and what is in flight at the stop is cancelled. `slots` bounds how many responses a server works on at once.
    `progress` hears how many questions each step took.
    """
    controllers = [controllers] if isinstance(controllers, str | Controller) else controllers
    chosen = [get_controller(controller) for controller in controllers]
    batches = draw_episodes(pool, budget, repeats, seed)
    for controller in chosen:
        controller.next_round(Tally(budget))  # what doesn't fit this budget says so before the work begins
        if flow:
            flow.check(controller)
    clocked = flow is not None or slots is not None
    measured: list[list[dict[str, FloatArray]]] = [[] for _ in chosen]
    sums = np.zeros((len(chosen), DECILES, 3))
    tell = confidence and budget <= LARGEST_BUDGET
    for episodes in batches:
        for number, controller in enumerate(chosen):
            outcomes = replay_clocked(episodes, controller, flow, slots) if clocked else replay(episodes, controller)
            sure = outcomes.confidences(episodes) if tell else np.full(len(outcomes.answer), np.nan)
            measured[number].append(_measure(episodes, outcomes, sure, penalties))
            if tell:
                sums[number] += decile_sums(sure, outcomes.answer == episodes.standings.reference)
            progress(len(episodes.questions))
    return [
        _result(pool, str(asked), parts, Reliability(deciles) if tell else None)
        for asked, parts, deciles in zip(controllers, measured, sums, strict=True)
    ]


def _measure(episodes: Episodes, outcomes: Outcomes, sure: FloatArray, penalties: Penalties) -> dict[str, FloatArray]:
    """Each metric by question, the mean over its repeats."""

    def mean(values: np.ndarray) -> FloatArray:
        means: FloatArray = values.reshape(-1, episodes.repeats).mean(axis=1)
        return means

    golds = [question.gold for question in episodes.questions]
    metered = [question.tokens is not None and None not in question.tokens for question in episodes.questions]
    accuracy = mean(outcomes.answer == episodes.codes(golds))
    agreement = mean(outcomes.answer == episodes.standings.reference)
    rounds, samples = mean(outcomes.rounds), mean(outcomes.samples)
    leader = outcomes.leader_votes(episodes)
    return {
        "accuracy": np.where([gold is None for gold in golds], np.nan, 100 * accuracy),
        "agreement": 100 * agreement,
        "rounds": rounds,
        "samples": samples,
        "total_tokens": np.where(metered, mean(outcomes.total_tokens), np.nan),
        "sequential_tokens": np.where(metered, mean(outcomes.sequential_tokens), np.nan),
        "latency_tokens": np.where(metered, mean(outcomes.latency_tokens), np.nan),
        "spent_tokens": np.where(metered, mean(outcomes.spent_tokens), np.nan),
        "launched": mean(outcomes.launched),
        "reward": 2 * agreement - 1 - penalties.draw * samples - penalties.round * rounds,
        "confidence": 100 * mean(sure),
        "share": 100 * mean(leader / np.maximum(outcomes.samples, 1)),
    }


def _result(pool: Pool, controller: str, parts: list[dict[str, FloatArray]], reliability: Reliability | None) -> Result:
    by_question = {metric: np.concatenate([part[metric] for part in parts]) for metric in METRICS}
    means: dict[str, Any] = {metric: _mean(values) for metric, values in by_question.items()}
    return Result(pool.name, controller, len(pool.questions), **means, reliability=reliability, by_question=by_question)


def _mean(values: FloatArray) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else None


def mean_over_pools(results: Sequence[Result], metric: str) -> float | None:
    """A metric's plain mean over the results; None where one of them can't tell it."""
    values = [getattr(result, metric) for result in results]
    return None if None in values else float(np.mean(values))


@dataclass(frozen=True)
class Comparison:
    """Several controllers on one pool, and what they are compared with on the same draws.

    `ceilings` has, for each learned controller, the exact planner with the same actions and penalties; `checkpoints`
    the vote after fixed numbers of draws.
    """

    results: list[Result]
    baseline: Result
    ceilings: Mapping[str, Result] = field(default_factory=dict)
    checkpoints: Sequence[Result] = ()

    def regret(self, result: Result) -> float | None:
        """How much more reward the planner gets; None for a controller that wasn't learned."""
        ceiling = self.ceilings.get(result.controller)
        return None if ceiling is None else ceiling.reward - result.reward


def reliabilities(comparisons: Sequence[Comparison]) -> dict[str, Reliability]:
    """All pools together: by controller, and by the number of draws at the checkpoints."""
    by_name: dict[str, list[Reliability | None]] = {}
    for pool in comparisons:
        for result in pool.results:
            by_name.setdefault(f"{result.controller}, at its stop", []).append(result.reliability)
        for result in pool.checkpoints:
            by_name.setdefault(f"after {result.samples:.0f} draws", []).append(result.reliability)
    together = {name: pooled(parts) for name, parts in by_name.items()}
    return {name: reliability for name, reliability in together.items() if reliability}


@dataclass(frozen=True)
class Difference:
    """How much more one controller has of something than another, with a 95 % interval."""

    mean: float
    low: float
    high: float


def difference(results: Sequence[Result], baseline: Sequence[Result], metric: str) -> Difference | None:
    """The paired difference of a metric, averaged over pools, for the same pools in the same order.

    Questions are resampled within each pool, and both controllers keep the same ones. None where a pool
    can't tell the metric.
    """
    means, resampled = [], []
    for position, (ours, theirs) in enumerate(zip(results, baseline, strict=True)):
        gaps = ours.by_question[metric] - theirs.by_question[metric]
        gaps = gaps[~np.isnan(gaps)]
        if not gaps.size:
            return None
        means.append(gaps.mean())
        resampled.append(_times_drawn(gaps.size, position) @ gaps / gaps.size)
    low, high = np.percentile(np.mean(resampled, axis=0), [2.5, 97.5])
    return Difference(float(np.mean(means)), float(low), float(high))


@lru_cache(maxsize=32)
def _times_drawn(questions: int, pool: int) -> FloatArray:
    """How often each question is drawn in each resample, a row a resample; each pool has draws of its own."""
    random = np.random.default_rng(pool)
    return random.multinomial(questions, np.full(questions, 1 / questions), size=RESAMPLES).astype(np.float32)
