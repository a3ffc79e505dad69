"""Tables 1, 2 and 5 of the paper: methods side by side, the learned ones with several seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

import numpy as np

from suffice.controllers import LearnedController
from suffice.experiments.bench import Bench
from suffice.planning import EXACT_BUDGET, Plan
from suffice.replay import Difference, Result, difference, mean_over_pools
from suffice.training.setting import TARGETS, TrainingJob

LEARNED = "RL-guided"
LEARNED_METHODS = (LEARNED, *TARGETS)
"""Those that are trained, in the tables of this module."""
COMPARED = ("accuracy", "agreement", "samples", "rounds", "reward")

Measured = Mapping[str, Mapping[str, list[Result]]]
"""By test pool and method: one result, or one for each seed."""

Jobs = Mapping[tuple[str, str, int], TrainingJob]
"""By test pool, method and seed."""


@dataclass(frozen=True)
class Methods:
    """What each method measures on each pool, and the one that changes are against.

    `pairs` are those whose difference is of interest: the first of each against the second. `ceilings` has, by pool,
    the exact planner with the learned controllers' actions and penalties.
    """

    measured: Measured
    base: str
    pairs: Sequence[tuple[str, str]]
    ceilings: Mapping[str, Result] = field(default_factory=dict)

    @property
    def rewards(self) -> tuple[float, float] | None:
        """The mean reward of the learned controllers, and of the planner on the same pools, where there are both."""
        pools = [pool for pool in self.ceilings if LEARNED in self.measured[pool]]
        if not pools:
            return None
        own = [mean_over_pools(self.measured[pool][LEARNED], "reward") or 0.0 for pool in pools]
        return fmean(own), fmean(self.ceilings[pool].reward for pool in pools)

    def differences(self, pools: Sequence[str]) -> dict[tuple[str, str], dict[str, Difference | None]]:
        """Of each pair, over these pools, with intervals over questions; seeds are averaged question by question."""
        found = {}
        for pair in self.pairs:
            if all(method in self.measured[pool] for method in pair for pool in pools):
                ours, theirs = ([mean_result(self.measured[pool][method]) for pool in pools] for method in pair)
                found[pair] = {metric: difference(ours, theirs, metric) for metric in COMPARED}
        return found


def mean_result(results: Sequence[Result]) -> Result:
    """One result in place of several seeds', of which each question has the mean."""
    metrics = results[0].by_question
    means = {metric: np.mean([result.by_question[metric] for result in results], axis=0) for metric in metrics}
    return replace(results[0], by_question=means)


def main_jobs(bench: Bench) -> Jobs:
    """The controllers of the main tables."""
    return _jobs(bench, {LEARNED: bench.setting.target})


def main(bench: Bench) -> Methods:
    """Tables 1 and 5: rules and the learned controller, in samples and rounds and in tokens."""
    rules = {f"SC@{bench.budget}": "sc", "ASC": "asc", "ESC": "esc"}
    measured = _with_seeds(bench, main_jobs(bench), rules)
    ceilings = {}
    if bench.budget <= EXACT_BUDGET:
        penalties = bench.setting.penalties
        planner = Plan(penalties.draw, penalties.round, bench.setting.actions)
        ceilings = {pool.name: bench.evaluate(pool, [planner])[0] for pool in bench.test}
    return Methods(measured, next(iter(rules)), [(LEARNED, rule) for rule in rules], ceilings)


def ablation_jobs(bench: Bench) -> Jobs:
    """Controllers for each target that the training pools know."""
    targets = {target: target for target in TARGETS}
    if any(question.gold is None for pool in bench.test for p in bench.training_for(pool) for question in p.questions):
        targets.pop("gold")
    return _jobs(bench, targets)


def ablation(bench: Bench) -> Methods:
    """Table 2: what counts as right in training."""
    jobs = ablation_jobs(bench)
    base, *others = dict.fromkeys(name for _, name, _ in jobs)
    return Methods(_with_seeds(bench, jobs, {}), base, [(other, base) for other in others])


def _jobs(bench: Bench, targets: Mapping[str, str]) -> Jobs:
    """For every test pool, under the names of `targets`, all seeds."""
    return {
        (pool.name, name, seed): bench.job(bench.training_for(pool), target=target, seed=seed)
        for pool in bench.test
        for name, target in targets.items()
        for seed in range(bench.seeds)
    }


def _with_seeds(bench: Bench, jobs: Jobs, rules: Mapping[str, str]) -> Measured:
    """Rules and learned controllers on every test pool."""
    learned = bench.learned(jobs)
    measured: dict[str, dict[str, list[Result]]] = {}
    for pool in bench.test:
        methods: list[tuple[str, str | LearnedController]] = [
            *rules.items(),
            *((name, controller) for (tested, name, _), controller in learned.items() if tested == pool.name),
        ]
        measured[pool.name] = {name: [] for name, _ in methods}
        for (name, _), result in zip(methods, bench.evaluate(pool, [one for _, one in methods]), strict=True):
            measured[pool.name][name].append(result)
    return measured
