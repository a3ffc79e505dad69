"""The paper's experiments and ours, as functions: each trains and replays what it needs and returns its figures."""

from collections.abc import Callable
from typing import Any

from suffice.experiments.bench import Bench, benchmark_of, model_of
from suffice.experiments.explain import Effort, Explained, explain
from suffice.experiments.methods import Measured, Methods, ablation, main
from suffice.experiments.sweeps import Curves, Point, frontier, scaling
from suffice.experiments.transfer import Transfer, transfer

__all__ = [
    "EXPERIMENTS",
    "Bench",
    "Curves",
    "Effort",
    "Explained",
    "Measured",
    "Methods",
    "Point",
    "Transfer",
    "ablation",
    "benchmark_of",
    "explain",
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
}
