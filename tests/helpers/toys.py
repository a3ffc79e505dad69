"""Training and the paper's experiments in seconds: in this process, with few of everything."""

import importlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from suffice import Penalties, save_controller
from suffice.controllers import LearnedController
from suffice.executors import Here, Processes
from suffice.experiments.bench import job_key
from suffice.planning import budgets as planning_budgets
from suffice.training import learner
from suffice.training.learner import PRESETS
from suffice.training.setting import TrainingJob

sweeps, budgets, panels = (
    importlib.import_module(f"suffice.experiments.{name}") for name in ("scaling", "budgets", "panel")
)


def train_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would train in processes does in this one, which has loaded torch, on few copies."""
    monkeypatch.setattr(Processes, "run", Here.run)
    fast = PRESETS["fast"]
    few = replace(fast, copies=8, options=fast.options | {"batch_size": 512})
    monkeypatch.setitem(PRESETS, "fast", few)


def shrink(monkeypatch: pytest.MonkeyPatch) -> None:
    """The experiments have two points to a curve, and training watches few episodes."""
    train_here(monkeypatch)
    monkeypatch.setattr(sweeps, "PENALTIES", (0.0075, 0.03))
    for name in ("THRESHOLDS", "WINDOWS", "SIZES"):
        monkeypatch.setattr(sweeps, name, getattr(sweeps, name)[-2:])
    monkeypatch.setattr(learner, "FINAL_REPEATS", 5)
    monkeypatch.setattr(learner, "WATCH_EPISODES", 15)
    monkeypatch.setattr(planning_budgets, "COLUMNS", 6)
    monkeypatch.setattr(panels, "VALUES", (1,))
    monkeypatch.setattr("suffice.panel.fitted.EPISODES", 60)
    monkeypatch.setattr(budgets, "FIXED_PENALTIES", (Penalties(0.0075), Penalties(0.03, 0.01)))
    monkeypatch.setattr(budgets, "GRID", ((12.0, 6.0),))


def put(where: Path, jobs: Iterable[TrainingJob], scale: float = 1.0) -> None:
    """Leave a controller that has learned nothing for each job, as an earlier run would have."""
    where.mkdir(exist_ok=True)
    weights = scale * np.random.default_rng(0).normal(size=(4, 7))
    for job in jobs:
        own = job.setting
        card = {"budget": own.budget, "top": own.top, "first": own.first, "actions": list(own.actions)}
        card |= {"kind": "learned", "format": 1, "activation": "tanh"}
        controller = LearnedController([(weights, np.zeros(4))], card)
        save_controller(controller, where / f"{job_key(job)}.safetensors")
