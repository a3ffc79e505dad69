"""The paper's experiments and ours, as functions: each trains and replays what it needs and returns its figures."""

from collections.abc import Callable, Mapping
from typing import Any

from suffice.experiments.bench import Bench, benchmark_of, model_of
from suffice.experiments.budgets import Kept, budgets, budgets_jobs
from suffice.experiments.elections import Elected, elections
from suffice.experiments.explain import Effort, Explained, explain, explain_jobs
from suffice.experiments.forecast import Forecast, forecast
from suffice.experiments.methods import Measured, Methods, ablation, ablation_jobs, main, main_jobs
from suffice.experiments.sweeps import Curves, Point, frontier, frontier_jobs, scaling, scaling_jobs
from suffice.experiments.transfer import Transfer, transfer, transfer_jobs
from suffice.training.setting import Job

__all__ = [
    "EXPERIMENTS",
    "JOBS",
    "Bench",
    "Curves",
    "Effort",
    "Elected",
    "Explained",
    "Forecast",
    "Kept",
    "Measured",
    "Methods",
    "Point",
    "Transfer",
    "ablation",
    "benchmark_of",
    "budgets",
    "elections",
    "explain",
    "forecast",
    "frontier",
    "main",
    "model_of",
    "scaling",
    "transfer",
]

EXPERIMENTS: dict[str, Callable[[Bench], Any]] = {
    "main": main,
    "scaling": scaling,
    "frontier": frontier,
    "ablation": ablation,
    "explain": explain,
    "transfer": transfer,
    "budgets": budgets,
    "elections": elections,
}

JOBS: dict[str, Callable[[Bench], Mapping[Any, Job]]] = {
    "main": main_jobs,
    "scaling": scaling_jobs,
    "frontier": frontier_jobs,
    "ablation": ablation_jobs,
    "explain": explain_jobs,
    "transfer": transfer_jobs,
    "budgets": budgets_jobs,
}
"""What experiments train: how long they take is told from it beforehand."""
