"""Training: the decision process as environments (extra: train)."""

from suffice.training.env import SamplingEnv, SamplingVecEnv
from suffice.training.setting import Setting

__all__ = ["SamplingEnv", "SamplingVecEnv", "Setting"]
