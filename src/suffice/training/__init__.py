"""Training: the decision process as environments, and controllers learned in them (extra: train)."""

import importlib
from typing import TYPE_CHECKING, Any

from suffice.training.setting import TARGETS, Job, Setting

if TYPE_CHECKING:
    from suffice.training.env import SamplingEnv, SamplingVecEnv, Supply, episode_tables
    from suffice.training.learner import Trained, Watched, learn
    from suffice.training.runs import check_job, learn_each, train

__all__ = [
    "TARGETS",
    "Job",
    "SamplingEnv",
    "SamplingVecEnv",
    "Setting",
    "Supply",
    "Trained",
    "Watched",
    "check_job",
    "episode_tables",
    "learn",
    "learn_each",
    "train",
]


def __getattr__(name: str) -> Any:
    """What trains is imported when it is first used: it brings torch."""
    if name in __all__:
        for home in ("env", "learner", "runs"):
            module = importlib.import_module(f"suffice.training.{home}")
            if name in vars(module):
                return vars(module)[name]
    raise AttributeError(f"module 'suffice.training' has no attribute {name!r}")
