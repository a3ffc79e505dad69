"""Comparing controllers: with a baseline, with the exact planner and with fixed numbers of draws, on the same draws."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from suffice.elections import Election, Majority, get_election
from suffice.errors import whole_number
from suffice.executors import AnyExecutor
from suffice.flow import Flow
from suffice.notebook import frame, table
from suffice.penalties import Penalties
from suffice.planning.controller import ceiling
from suffice.pools import AnyPool, get_pools
from suffice.replay.evaluate import DEFAULT_REPEATS, METRICS, AnyController, Replay, Result, Variant, replay_variants
from suffice.replay.reliability import Reliability, pooled
from suffice.tally import DEFAULT_BUDGET, FloatArray

CHECKPOINTS = (4, 8, 16, 24)
"""Numbers of draws after which the confidence is checked."""

RESAMPLES = 1000

FEWEST_FOR_INTERVAL = 20
"""Resampling fewer questions than this says little of others: there is no interval then."""

_SHOWN = ("accuracy", "agreement", "rounds", "samples", "total_tokens", "reward")


@dataclass(frozen=True)
class Comparison:
    """Several controllers on one pool, and what they are compared with on the same draws.

    `ceilings` has, for each learned controller, the exact planner with the same actions and penalties; `checkpoints`
    the vote after fixed numbers of draws.

    >>> (pool,) = compare("smollm2-135m__arithmetic", ["asc", "rl"], repeats=2)
    >>> [pool.regret(result) is None for result in pool.results], pool.baseline.controller
    ([True, False], 'sc')
    """

    results: list[Result]
    baseline: Result
    ceilings: Mapping[str, Result] = field(default_factory=dict)
    checkpoints: Sequence[Result] = ()

    def __repr__(self) -> str:
        names = ", ".join(result.controller for result in self.results)
        return f"Comparison({self.baseline.pool!r}: {names}; against {self.baseline.controller})"

    def _repr_html_(self) -> str:
        rows = [[one.controller, *(getattr(one, name) for name in _SHOWN)] for one in self._all]
        return table(self.baseline.pool, ["controller", *(name.replace("_", " ") for name in _SHOWN)], rows)

    def to_pandas(self) -> Any:
        """A row a controller, the baseline first, in a data frame of pandas: the pool and all metrics."""
        return frame("pandas", self._columns())

    def to_polars(self) -> Any:
        """The same as `to_pandas`, in a data frame of polars."""
        return frame("polars", self._columns())

    def _columns(self) -> dict[str, list[Any]]:
        return {name: [getattr(one, name) for one in self._all] for name in ("pool", "controller", *METRICS)}

    @property
    def _all(self) -> list[Result]:
        return [self.baseline, *(one for one in self.results if one is not self.baseline)]

    def regret(self, result: Result) -> float | None:
        """How much more reward the planner gets; None for a controller that wasn't learned."""
        ceiling = self.ceilings.get(result.controller)
        return None if ceiling is None else ceiling.reward - result.reward


def compare(
    pools: AnyPool | Sequence[AnyPool],
    controllers: Sequence[AnyController],
    *,
    baseline: AnyController = "sc",
    budget: int = DEFAULT_BUDGET,
    repeats: int = DEFAULT_REPEATS,
    seed: int = 0,
    penalties: Penalties = Penalties(),
    flow: Flow | None = None,
    slots: int | None = None,
    elect: str | Election = "majority",
    progress: Callable[[float], None] = lambda share: None,
    executor: AnyExecutor = "here",
) -> list[Comparison]:
    """Replay controllers over pools and what they are compared with, which is always in rounds and by majority.

    Args:
        pools, controllers, budget, repeats, seed, slots, executor: As in `evaluate`.
        baseline: The controller that differences are against.
        penalties: What a draw and a round cost; learned controllers are measured against the exact planner with these.
        flow, elect: As in `evaluate`, for the controllers alone.
        progress: Called with the share of the work that each step was.

    Returns:
        A comparison for each pool.

    Raises:
        PoolError: As in `evaluate`, as are ControllerError and OptionError.

    >>> (pool,) = compare("smollm2-135m__arithmetic", ["asc"], repeats=10)
    >>> gap = difference(pool.results, [pool.baseline], "samples")
    >>> gap.low < gap.mean < gap.high < 0
    True
    """
    whole_number("budget", budget)
    loaded = get_pools(pools)
    asked = [Variant.of(controller, flow, elect) for controller in controllers]
    planners = {one.name: plan for one in asked if (plan := ceiling(one.controller, penalties, budget))}
    plain = not flow and isinstance(get_election(elect), Majority)
    own = next((number for number, one in enumerate(controllers) if plain and one == baseline), len(asked))
    variants = [
        *asked,
        Variant.of(baseline),
        *map(Variant.of, planners.values()),
        *(Variant.of(f"sc:draws={draws}") for draws in CHECKPOINTS if draws < budget),
    ]
    setting = Replay(budget, repeats, seed, penalties, slots=slots)
    total = len(variants) * sum(len(pool.questions) for pool in loaded)
    found = replay_variants(loaded, variants, setting, lambda questions: progress(questions / total), executor)
    compared = []
    for results in found:
        others = results[len(asked) + 1 :]
        ceilings = dict(zip(planners, others, strict=False))
        compared.append(Comparison(results[: len(asked)], results[own], ceilings, others[len(planners) :]))
    return compared


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
    """How much more one controller has of something than another, with a 95 % interval.

    `low` and `high` are None where there are fewer than 20 questions.

    >>> Difference(mean=-9.1, low=-11.0, high=-7.2).high < 0
    True
    """

    mean: float
    low: float | None
    high: float | None


def difference(results: Sequence[Result], baseline: Sequence[Result], metric: str) -> Difference | None:
    """The paired difference of a metric, averaged over pools.

    Args:
        results: One controller's, a result a pool.
        baseline: Another's, for the same pools in the same order and of the same draws.
        metric: A field of `Result`.

    Returns:
        The mean, with a 95 % interval for which the questions of each pool are resampled, the same ones for both
        controllers; without an interval where there are fewer than 20 in all. None where a pool can't tell the metric.

    >>> from suffice import evaluate
    >>> sc, asc = evaluate("smollm2-135m__arithmetic", ["sc", "asc"], repeats=10)
    >>> difference([asc], [sc], "samples").high < 0
    True
    """
    return paired(
        [ours.by_question[metric] - theirs.by_question[metric] for ours, theirs in zip(results, baseline, strict=True)]
    )


def paired(differences: Sequence[FloatArray]) -> Difference | None:
    """The mean over pools of the differences of their questions, with its interval; None where a pool has none."""
    known = [gaps[~np.isnan(gaps)] for gaps in differences]
    sizes = [gaps.size for gaps in known]
    if 0 in sizes:
        return None
    mean = float(np.mean([gaps.mean() for gaps in known]))
    if sum(sizes) < FEWEST_FOR_INTERVAL:
        return Difference(mean, None, None)
    resampled = [_times_drawn(gaps.size, pool) @ gaps / gaps.size for pool, gaps in enumerate(known)]
    low, high = np.percentile(np.mean(resampled, axis=0), [2.5, 97.5])
    return Difference(mean, float(low), float(high))


@lru_cache(maxsize=32)
def _times_drawn(questions: int, pool: int) -> FloatArray:
    """How often each question is drawn in each resample, a row a resample; each pool has draws of its own."""
    random = np.random.default_rng(pool)
    return random.multinomial(questions, np.full(questions, 1 / questions), size=RESAMPLES).astype(np.float32)
