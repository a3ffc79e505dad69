"""Training: the decision process as environments, and controllers learned in them (extra: train)."""

from suffice.training.env import SamplingEnv, SamplingVecEnv, Supply, episode_tables
from suffice.training.learner import Job, Trained, Watched, learn
from suffice.training.setting import TARGETS, Setting
from suffice.training.train import check_job, learn_each, train

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
