"""The paper's experiments and ours: a file each, with what it runs, its table and its figure."""

from suffice.experiments import ablation, budgets, elections, explain, frontier, main, panel, scaling, transfer
from suffice.experiments.bench import Bench, Experiment

__all__ = ["EXPERIMENTS", "Bench", "Experiment"]


EXPERIMENTS = {
    "main": main.EXPERIMENT,
    "scaling": scaling.EXPERIMENT,
    "frontier": frontier.EXPERIMENT,
    "ablation": ablation.EXPERIMENT,
    "explain": explain.EXPERIMENT,
    "transfer": transfer.EXPERIMENT,
    "budgets": budgets.EXPERIMENT,
    "elections": elections.EXPERIMENT,
    "panel": panel.EXPERIMENT,
}
"""By name, in the order of `suffice reproduce all`."""
