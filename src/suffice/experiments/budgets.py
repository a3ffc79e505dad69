"""The paper's proposition as an experiment: budgets on average, met by penalties that are found or chosen."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from suffice.controllers import Controller
from suffice.experiments.bench import Bench, Training, model_of
from suffice.experiments.sweeps import PENALTIES, ROUND_PENALTY
from suffice.penalties import Penalties
from suffice.planning import Plan
from suffice.replay import Result, evaluate, mean_over_pools
from suffice.replay.targets import SEARCH_REPEATS, meet
from suffice.tally import DEFAULT_BUDGET
from suffice.training.setting import TrainingJob

GRID = ((12.0, 3.5), (12.0, 6.0), (16.0, 4.5), (16.0, 8.0), (20.0, 5.5), (20.0, 8.0))
"""Mean samples and mean rounds at a budget of 32: rounds of at most 4 draws can keep to each."""

FIXED_PENALTIES = tuple(Penalties(draw, round_) for draw, round_ in product(PENALTIES, (0.0, ROUND_PENALTY)))
"""Those that `scaling` trains controllers for: the best for a budget is chosen among them."""

SLACK = 0.05
"""A budget counts as kept where no mean is over it by more than this share."""

WAYS = ("PPO-Lagrangian", "PPO, best fixed", "plan, dual search", "plan, best fixed")

Limits = tuple[float, float]
"""The most samples and the most rounds on average."""


@dataclass(frozen=True)
class Kept:
    """How one way keeps to one budget on one test pool, or in the mean over a model's: a result, or one a seed."""

    limits: Limits
    way: str
    pool: str
    results: Sequence[Result]
    among: int = 0
    """Of how many fixed penalties the best was chosen."""

    @property
    def met(self) -> int:
        """How many of the results keep to the budget."""
        return sum(_excess(self.limits, result.samples, result.rounds) <= SLACK for result in self.results)


def budgets_jobs(bench: Bench) -> dict[tuple[str, Limits | Penalties, int], TrainingJob]:
    """By training pools, budget or fixed penalties, and seed."""
    jobs: dict[tuple[str, Limits | Penalties, int], TrainingJob] = {}
    for (names, training), seed in product(_trainings(bench).items(), range(bench.seeds)):
        for limits in _grid(bench):
            jobs[names, limits, seed] = bench.job(training, seed=seed, mean_samples=limits[0], mean_rounds=limits[1])
        for penalties in FIXED_PENALTIES:
            jobs[names, penalties, seed] = bench.job(training, penalties, seed=seed)
    return jobs


def budgets(bench: Bench) -> list[Kept]:
    """For each budget: penalties found while PPO learns, found for plans, and chosen among fixed ones for both.

    All is settled on the training pools.
    """
    learned = bench.learned(budgets_jobs(bench))
    found: dict[tuple[str, Limits, str], list[Controller]] = {}
    among: dict[tuple[str, str], int] = {}
    trainings, grid = _trainings(bench), _grid(bench)
    with bench.bar("penalties for budgets", len(trainings) * len(grid)) as advance:
        for names, training in trainings.items():
            mine = {key[1:]: controller for key, controller in learned.items() if key[0] == names}
            by_seed = [
                [one for (what, own), one in mine.items() if own == seed and isinstance(what, Penalties)]
                for seed in range(bench.seeds)
            ]
            most = max(map(len, by_seed))  # a seed with fewer to choose from would seem a worse chooser
            groups = [_chooser(bench, training, some) for some in by_seed if some and len(some) == most]
            among |= {(names, WAYS[1]): most, (names, WAYS[3]): len(FIXED_PENALTIES)}
            plans = _chooser(bench, training, [Plan(p.draw, p.round, bench.setting.actions) for p in FIXED_PENALTIES])
            for limits in grid:
                lagrangian = [one for (what, _), one in mine.items() if what == limits]
                planned = meet(Plan(actions=bench.setting.actions), bench.budget, training, *limits, None).controller
                chosen: tuple[list[Controller], ...] = (
                    [*lagrangian],
                    [best(limits) for best in groups],
                    [planned],
                    [plans(limits)],
                )
                found |= {(names, limits, way): some for way, some in zip(WAYS, chosen, strict=True)}
                advance(1)
    return _replayed(bench, found, among)


def _replayed(
    bench: Bench, found: Mapping[tuple[str, Limits, str], Sequence[Controller]], among: Mapping[tuple[str, str], int]
) -> list[Kept]:
    """What was found for each test pool's training pools, on that pool, and in the mean over a model's pools."""
    kept: list[Kept] = []
    for pool in bench.test:
        mine = {key: some for key, some in found.items() if key[0] == _names(bench.training_for(pool)) and some}
        results = iter(bench.evaluate(pool, [controller for some in mine.values() for controller in some]))
        for (names, limits, way), some in mine.items():
            kept.append(Kept(limits, way, pool.name, [next(results) for _ in some], among.get((names, way), 0)))
    for model, limits, way in product(dict.fromkeys(map(model_of, bench.test)), _grid(bench), WAYS):
        pools = [pool.name for pool in bench.test if model_of(pool) == model]
        mine_of = [one for one in kept if (one.limits, one.way) == (limits, way) and one.pool in pools]
        if len(pools) > 1 and len(mine_of) == len(pools):
            runs = zip(*(one.results for one in mine_of), strict=False)
            kept.append(replace(mine_of[0], pool=model, results=[_mean(run) for run in runs]))
    return kept


def _mean(results: Sequence[Result]) -> Result:
    """One result in place of several pools'."""
    means = {metric: mean_over_pools(results, metric) for metric in ("samples", "rounds", "agreement", "accuracy")}
    return replace(results[0], **means)  # type: ignore[arg-type]


def _chooser(bench: Bench, training: Training, controllers: Sequence[Controller]) -> Callable[[Limits], Controller]:
    """What chooses, by means on the training pools, who agrees most often within limits, or is least over them."""
    results = evaluate(training, controllers, budget=bench.budget, repeats=SEARCH_REPEATS, confidence=False)
    columns = np.array([(result.samples, result.rounds, result.agreement) for result in results])
    means = columns.reshape(len(training), len(controllers), 3).mean(axis=0).tolist()

    def best(limits: Limits) -> Controller:
        merits = [(-max(0.0, _excess(limits, samples, rounds)), agreement) for samples, rounds, agreement in means]
        return controllers[merits.index(max(merits))]

    return best


def _excess(limits: Limits, samples: float, rounds: float) -> float:
    """By which share a mean is over its limit, whichever is further."""
    return max(samples / limits[0], rounds / limits[1]) - 1


def _grid(bench: Bench) -> list[Limits]:
    return [(samples * bench.budget / DEFAULT_BUDGET, rounds) for samples, rounds in GRID]


def _trainings(bench: Bench) -> dict[str, Training]:
    """The pools that controllers are trained on, by their names."""
    return {_names(training): training for training in map(bench.training_for, bench.test)}


def _names(training: Training) -> str:
    return ", ".join(pool.name for pool in training)
