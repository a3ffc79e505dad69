"""Tables 1, 2 and 5 of the paper: methods side by side, the learned ones with several seeds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean

from suffice.controllers import LearnedController
from suffice.experiments.bench import Bench
from suffice.penalties import Penalties
from suffice.planning import Plan
from suffice.replay import Result, mean_over_pools
from suffice.training.setting import TARGETS, Job, Setting

RULES = {"SC@32": "sc", "ASC": "asc", "ESC": "esc"}
LEARNED = "RL-guided"

Measured = Mapping[str, Mapping[str, list[Result]]]
"""By test pool and method: one result, or one for each seed."""


@dataclass(frozen=True)
class Methods:
    """What each method measures on each pool, and the one that changes are against.

    `ceilings` has, by pool, the exact planner with the learned controllers' actions and penalties.
    """

    measured: Measured
    base: str
    ceilings: Mapping[str, Result] = field(default_factory=dict)

    @property
    def rewards(self) -> tuple[float, float]:
        """The mean reward of the learned controllers, and of the planner on the same pools."""
        own = [mean_over_pools(self.measured[pool][LEARNED], "reward") or 0.0 for pool in self.ceilings]
        return fmean(own), fmean(result.reward for result in self.ceilings.values())


def main(bench: Bench) -> Methods:
    """Tables 1 and 5: rules and the learned controller, in samples and rounds and in tokens."""
    measured = _with_seeds(bench, {LEARNED: Setting.target}, RULES)
    planner = Plan(Penalties.draw, Penalties.round, Setting.actions)
    ceilings = {pool.name: bench.evaluate(pool, [planner])[0] for pool in bench.test}
    return Methods(measured, "SC@32", ceilings)


def ablation(bench: Bench) -> Methods:
    """Table 2: what counts as right in training."""
    targets = {target: target for target in TARGETS}
    if any(question.gold is None for pool in bench.test for p in bench.training_for(pool) for question in p.questions):
        targets.pop("gold")
    return Methods(_with_seeds(bench, targets, {}), "running")


def _with_seeds(bench: Bench, targets: dict[str, str], rules: dict[str, str]) -> Measured:
    """Rules and, under the names of `targets`, controllers of all seeds, on every test pool."""
    jobs: dict[tuple[str, str, int], Job] = {
        (pool.name, name, seed): bench.job(bench.training_for(pool), target=target, seed=seed)
        for pool in bench.test
        for name, target in targets.items()
        for seed in range(bench.seeds)
    }
    learned = dict(zip(jobs, bench.learned(list(jobs.values())), strict=True))
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
