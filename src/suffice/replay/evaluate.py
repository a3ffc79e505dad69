"""Figures for controllers on pools, over shared draws."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import groupby
from statistics import fmean, stdev
from typing import Any

import numpy as np

from suffice.controllers import Controller, get_controller, question_random
from suffice.elections import Election, check_signals, get_election
from suffice.errors import OptionError, whole_number
from suffice.executors import AnyExecutor, Link, Task, get_executor
from suffice.flow import Flow
from suffice.notebook import frame, table
from suffice.penalties import Penalties
from suffice.planning import LARGEST_BUDGET, certainties, confidences, prior_of
from suffice.pools import AnyPool, Episodes, Pool, Question, check_draws, draw_episodes, get_pools
from suffice.replay.fields import replay_fields
from suffice.replay.reliability import Reliability, question_sums
from suffice.replay.run import CERTAINTY_REPEATS, COSTS, SHARES, Measures, replay
from suffice.settings import setting
from suffice.tally import DEFAULT_BUDGET, FloatArray, Tally

DEFAULT_REPEATS = 100

SECONDS = 1e-5
CLOCKED_SECONDS = 1.2e-4
FIELDS_SECONDS = 2e-2
WORTH_PROCESSES = 5
"""About how long an episode takes, by arrays, on the clock and by fields, and how long work must take for processes."""

SHARDS_EACH = 4
"""Into how many parts the questions are cut for each worker, so that none waits long for the slowest."""

FEWEST_QUESTIONS = 16
"""Parts of fewer questions than this are slow as arrays: variants are cut apart first."""


@dataclass(frozen=True)
class Result:
    """One controller on one pool, as means over questions and repeats; shares in percent.

    Accuracy is over the questions with a gold answer and token figures over those whose every response has a count;
    None where there are none. Confidence is None for a budget that is too large to tell it. `by_question` holds each
    metric's mean over the repeats, NaN where unknown. Of structured answers, accuracy and agreement are those of whole
    objects, and `field_accuracy` is the share of their fields that are right; None for others. Accuracy is that of the
    answers that the `election` gives; all else is of counts, whatever elects. Agreement is with the full vote of the
    same draws, `agreement_independent` with one of other draws, over the questions with twice the budget's responses.

    >>> (result,) = evaluate("smollm2-135m__arithmetic", "asc", repeats=2)
    >>> result.samples < 32, result.by_question["samples"].shape
    (True, (40,))
    """

    pool: str
    controller: str
    questions: int
    accuracy: float | None
    field_accuracy: float | None
    agreement: float
    agreement_independent: float | None
    rounds: float
    samples: float
    total_tokens: float | None
    sequential_tokens: float | None
    latency_tokens: float | None
    spent_tokens: float | None
    launched: float
    reward: float
    confidence: float | None
    certainty: float | None
    share: float
    reliability: Reliability | None = field(repr=False)
    by_question: Mapping[str, FloatArray] = field(repr=False, compare=False)
    election: str = "majority"

    def __repr__(self) -> str:
        right = "" if self.accuracy is None else f", {self.accuracy:.1f} % accuracy"
        return (
            f"Result({self.controller!r} on {self.pool!r}: {self.samples:.1f} samples in {self.rounds:.1f} rounds, "
            f"{self.agreement:.1f} % agreement{right})"
        )

    def _repr_html_(self) -> str:
        known = ((name, getattr(self, name)) for name in METRICS)
        rows = [(name.replace("_", " "), value) for name, value in known if value is not None]
        return table(f"{self.controller} on {self.pool}, {self.questions} questions", ["", "mean"], rows)

    def to_pandas(self) -> Any:
        """A row a question, in a data frame of pandas: its place in the pool, and each metric's mean over repeats."""
        return frame("pandas", self._columns())

    def to_polars(self) -> Any:
        """The same as `to_pandas`, in a data frame of polars."""
        return frame("polars", self._columns())

    def _columns(self) -> dict[str, Any]:
        about = {"pool": [self.pool] * self.questions, "controller": [self.controller] * self.questions}
        return {**about, "question": [*range(self.questions)], **self.by_question}


METRICS = tuple(
    one.name
    for one in fields(Result)
    if one.name not in ("pool", "controller", "questions", "reliability", "by_question", "election")
)
"""The fields of a result that are means."""

AnyController = str | Controller
"""A controller, or the string that describes it."""


def evaluate(
    pools: AnyPool | Sequence[AnyPool],
    controllers: AnyController | Sequence[AnyController],
    *,
    budget: int = DEFAULT_BUDGET,
    repeats: int = DEFAULT_REPEATS,
    seed: int = 0,
    penalties: Penalties = Penalties(),
    confidence: bool = True,
    flow: Flow | None = None,
    slots: int | None = None,
    elect: str | Election = "majority",
    progress: Callable[[int], None] = lambda questions: None,
    executor: AnyExecutor = "here",
) -> list[Result]:
    """Replay controllers over the same draws of a pool, or of several, one after the other.

    Args:
        pools: A `Pool`, the name of a bundled one, a path, or several of these.
        controllers: A controller, the string that describes one, or several of these.
        budget: The most draws for a question.
        repeats: How often each question is replayed, each time with its responses in another order.
        seed: Chooses the draws.
        penalties: What a draw and a round cost in the reward.
        confidence: False leaves confidence and certainty out, which is quicker.
        flow: Where given there are no rounds: a decision on every arrival, and what is in flight at the stop is
            cancelled.
        slots: How many responses to a question the server works on at once; all where it is None.
        elect: The election that accuracy is told of; it needs pools with the signals that it weighs with.
        progress: Called with how many questions each step took.
        executor: Where the work runs: "here", "processes" for all cores, "ray". The figures are the same.

    Returns:
        A result for each pool and controller, pool by pool.

    Raises:
        PoolError: Where a pool is missing, too small for the budget, or without the signals.
        ControllerError: Where a controller is unknown, or does not serve the budget or the flow.
        OptionError: Where another argument is out of range.

    >>> [f"{result.controller}: {result.samples:.0f}" for result in evaluate("smollm2-135m__arithmetic", ["sc", "asc"])]
    ['sc: 32', 'asc: 23']
    """
    asked = [controllers] if isinstance(controllers, AnyController) else controllers
    variants = [Variant.of(controller, flow, elect) for controller in asked]
    setting = Replay(budget, repeats, seed, penalties, confidence, slots)
    found = replay_variants(get_pools(pools), variants, setting, progress, executor)
    return [result for results in found for result in results]


@dataclass(frozen=True)
class Variant:
    """A controller under the name it was asked for by, with its flow and its election."""

    controller: Controller
    flow: Flow | None
    name: str
    election: Election
    elect: str

    @classmethod
    def of(cls, controller: AnyController, flow: Flow | None = None, elect: str | Election = "majority") -> "Variant":
        return cls(get_controller(controller), flow, str(controller), get_election(elect), str(elect))


@dataclass(frozen=True)
class Replay:
    """The settings that all variants of one replay share."""

    budget: int = setting(DEFAULT_BUDGET, "The most draws for a question.")
    repeats: int = setting(DEFAULT_REPEATS, "How often each question is replayed.")
    seed: int = setting(0, "Chooses the draws.")
    penalties: Penalties = Penalties()
    confidence: bool = True
    slots: int | None = None

    @property
    def tells_confidence(self) -> bool:
        return self.confidence and self.budget <= LARGEST_BUDGET

    def check(self, pools: Sequence[Pool], variants: Sequence[Variant]) -> None:
        """Refuse what can't be replayed, before the work begins."""
        if self.slots is not None:
            whole_number("slots", self.slots)
        for pool in pools:
            check_draws(pool, self.budget, self.repeats, self.seed)
            for variant in variants:
                chosen = variant.controller.for_question(question_random(self.seed, pool.questions[0].id))
                chosen.next_round(Tally(self.budget))
                if variant.flow:
                    variant.flow.check(chosen)
                check_signals(variant.election, pool)
            structured = any(question.structured for question in pool.questions)
            if structured and (self.slots or any(variant.flow for variant in variants)):
                raise OptionError(f"{pool.name} has structured answers, which are replayed in rounds and with no clock")


def replay_variants(
    pools: Sequence[Pool],
    variants: Sequence[Variant],
    setting: Replay,
    progress: Callable[[int], None] = lambda questions: None,
    executor: AnyExecutor = "here",
) -> list[list[Result]]:
    """The results of each pool, a result a variant."""
    setting.check(pools, variants)
    runner = get_executor(executor)
    size, each = _cut(sum(len(pool.questions) for pool in pools), len(variants), runner.workers)
    shards = list(_shards(pools, size))
    parted = [tuple(variants[start : start + each]) for start in range(0, len(variants), each)]
    tasks: list[Task[list[Measures]]] = [
        (_replay_shard, (questions, some, setting)) for _, questions in shards for some in parted
    ]
    found = dict(runner.run(tasks, lambda number, questions: progress(questions)))
    if len(found) < len(tasks):
        raise KeyboardInterrupt
    results = []
    for place, pool in enumerate(pools):
        numbers = [number * len(parted) for number, (owner, _) in enumerate(shards) if owner == place]
        measured = ([one for part in range(len(parted)) for one in found[number + part]] for number in numbers)
        by_variant = zip(variants, zip(*measured, strict=True), strict=True)
        results.append([_result(pool, variant, parts) for variant, parts in by_variant])
    return results


def executor_for(pools: Sequence[Pool], variants: int, repeats: int, clocked: bool = False) -> str:
    """Where so many variants are replayed soonest: processes take seconds to begin, which the work must be worth."""
    questions = [question for pool in pools for question in pool.questions]
    structured = sum(question.structured for question in questions)
    plain = (len(questions) - structured) * (CLOCKED_SECONDS if clocked else SECONDS)
    seconds = variants * repeats * (plain + structured * FIELDS_SECONDS)
    return "processes" if seconds > WORTH_PROCESSES else "here"


def _cut(questions: int, variants: int, workers: int) -> tuple[int, int]:
    """Return the number of questions of a task, and of its variants, which share the draws and so stay together."""
    if workers == 1:
        return max(questions, 1), max(variants, 1)
    size = max(1, -(-questions // (workers * SHARDS_EACH)))
    parts = max(1, min(variants, FEWEST_QUESTIONS // size))
    return size * parts, max(1, -(-variants // parts))


def _shards(pools: Sequence[Pool], size: int) -> Iterator[tuple[int, tuple[Question, ...]]]:
    """Parts of the questions, each with the number of its pool: a question's figures depend on no other."""
    for number, pool in enumerate(pools):
        for _, alike in groupby(pool.questions, lambda question: question.structured):
            questions = tuple(alike)
            for start in range(0, len(questions), size):
                yield number, questions[start : start + size]


def _replay_shard(
    questions: tuple[Question, ...], variants: Sequence[Variant], setting: Replay, link: Link
) -> list[Measures]:
    """Each metric by question, for each variant; of the questions all are structured, or none."""
    parts: list[list[Measures]] = []
    for episodes in draw_episodes(Pool("", questions), setting.budget, setting.repeats, setting.seed):
        parts.append([])
        for found in _measures(episodes, variants, setting, link):
            parts[-1].append(_by_question(episodes, found, setting))
            link.tell(len(episodes.questions))
    return [concatenated(batches) for batches in zip(*parts, strict=True)]


def _measures(episodes: Episodes, variants: Sequence[Variant], setting: Replay, link: Link) -> Iterator[Measures]:
    unknown = np.full(len(episodes.answers), np.nan)
    if episodes.questions[0].structured:
        for found in replay_fields(episodes, [variant.controller for variant in variants], link.check):
            found["confidence"] = found["confidence"] if setting.tells_confidence else unknown
            found["certainty"] = found["certainty"] if setting.confidence else unknown
            yield found
        return
    second = episodes.second_reference
    certain = np.flatnonzero(np.arange(len(episodes.answers)) % episodes.repeats < CERTAINTY_REPEATS)
    for variant in variants:
        link.check()
        outcomes = replay(episodes, variant.controller, variant.flow, setting.slots)
        prior, tallies, certainty = prior_of(variant.controller), outcomes.tallies(), unknown.copy()
        if setting.confidence:
            certainty[certain] = certainties(outcomes.tallies(certain), prior)
        yield {
            "accuracy": outcomes.elected(variant.election).right,
            "field_accuracy": unknown,
            "agreement": outcomes.answer == episodes.standings.reference,
            "agreement_independent": np.where(np.isnan(second), np.nan, outcomes.answer == second),
            "confidence": confidences(tallies, prior) if setting.tells_confidence else unknown,
            "certainty": certainty,
            "share": tallies.top(1)[:, 0] / np.maximum(outcomes.samples, 1),
            **{name: getattr(outcomes, name) for name in COSTS},
        }


def concatenated(parts: Sequence[Measures]) -> Measures:
    return {metric: np.concatenate([part[metric] for part in parts]) for metric in parts[0]}


def _by_question(episodes: Episodes, found: Measures, setting: Replay) -> Measures:
    means = {name: row_means(values.reshape(-1, episodes.repeats)) for name, values in found.items()}
    metered = [question.tokens is not None and None not in question.tokens for question in episodes.questions]
    for name in ("total_tokens", "sequential_tokens"):
        means[name] = np.where(metered, means[name], np.nan)
    costs = setting.penalties.draw * means["samples"] + setting.penalties.round * means["rounds"]
    means["reward"] = 2 * means["agreement"] - 1 - costs
    for name in SHARES:
        means[name] = 100 * means[name]
    # On a clock these are the critical path, and what was generated until the stop.
    means |= {"latency_tokens": means["sequential_tokens"], "spent_tokens": means["total_tokens"]}
    if setting.tells_confidence:
        means["reliability"] = question_sums(found["confidence"], found["agreement"], episodes.repeats)
    return means


def row_means(rows: FloatArray) -> FloatArray:
    """The mean of what is known in each row, NaN where nothing is."""
    known = ~np.isnan(rows)
    sums = np.where(known, rows, 0).sum(axis=1)
    return np.where(known.any(axis=1), sums / np.maximum(known.sum(axis=1), 1), np.nan)


def _result(pool: Pool, variant: Variant, parts: Sequence[Measures]) -> Result:
    found = concatenated(parts)
    sums = found.pop("reliability", None)
    by_question = {metric: found[metric] for metric in METRICS}
    means: dict[str, Any] = {metric: known_mean(values) for metric, values in by_question.items()}
    reliability = None if sums is None else Reliability(sums.sum(axis=0))
    means |= {"reliability": reliability, "by_question": by_question, "election": variant.elect}
    return Result(pool.name, variant.name, len(pool.questions), **means)


def known_mean(values: FloatArray) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else None


def spread(values: Sequence[float | None]) -> tuple[float | None, float | None]:
    """The mean of values and their standard deviation; None where one is not known, or has no other beside it."""
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None, None
    return fmean(known), stdev(known) if len(known) > 1 else None


def mean_over_pools(results: Sequence[Result], metric: str) -> float | None:
    """A metric's plain mean over the results; None where one of them can't tell it."""
    values = [getattr(result, metric) for result in results]
    return None if None in values else float(np.mean(values))
