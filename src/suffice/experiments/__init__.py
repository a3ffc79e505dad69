"""The paper's experiments and ours, as functions: each trains and replays what it needs and returns its figures."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from suffice.experiments.bench import Bench
from suffice.experiments.budgets import budgets, budgets_jobs
from suffice.experiments.elections import elections
from suffice.experiments.explain import explain, explain_jobs
from suffice.experiments.methods import ablation, ablation_jobs, main, main_jobs
from suffice.experiments.panels import panels
from suffice.experiments.sweeps import frontier, frontier_jobs, scaling, scaling_jobs
from suffice.experiments.transfer import transfer, transfer_jobs
from suffice.training.setting import TrainingJob

__all__ = ["EXPERIMENTS", "Bench", "Experiment"]


Jobs = Mapping[Any, TrainingJob]


def no_jobs(bench: Bench) -> Jobs:
    """For an experiment that trains nothing."""
    return {}


@dataclass(frozen=True)
class Experiment:
    """What a name of `suffice reproduce` stands for; how its figures are shown is in `suffice.report.experiments`."""

    title: str
    run: Callable[[Bench], Any]
    """From the pools to the experiment's figures."""
    jobs: Callable[[Bench], Jobs] = no_jobs
    """What it trains: how long that takes is told from it beforehand."""

    @property
    def trains(self) -> bool:
        """Whether it trains anything."""
        return self.jobs is not no_jobs


EXPERIMENTS = {
    "main": Experiment("SC, ASC, ESC and the learned controller", main, main_jobs),
    "scaling": Experiment("Scaling curves", scaling, scaling_jobs),
    "frontier": Experiment("The planner's frontier", frontier, frontier_jobs),
    "ablation": Experiment("Reward targets: running majority, full majority, gold answer", ablation, ablation_jobs),
    "explain": Experiment("Where the samples go", explain, explain_jobs),
    "transfer": Experiment("Transfer between models", transfer, transfer_jobs),
    "budgets": Experiment("Budgets on average", budgets, budgets_jobs),
    "elections": Experiment("Elections by weight", elections),
    "panel": Experiment("A panel of all models: the rule, and what is fitted", panels),
}
"""By name, in the order of `suffice reproduce all`."""
