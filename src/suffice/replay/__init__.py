"""Replay: running controllers over pools as if it were live, all on the same draws."""

from suffice.replay.advise import Advice, Choice, advise
from suffice.replay.compare import Comparison, Difference, compare, difference
from suffice.replay.evaluate import DEFAULT_REPEATS, Result, evaluate, mean_over_pools
from suffice.replay.learning import learn_prior, replay_learning
from suffice.replay.reliability import certainty_reliability
from suffice.replay.weighing import weigh

__all__ = [
    "DEFAULT_REPEATS",
    "Advice",
    "Choice",
    "Comparison",
    "Difference",
    "Result",
    "advise",
    "certainty_reliability",
    "compare",
    "difference",
    "evaluate",
    "learn_prior",
    "mean_over_pools",
    "replay_learning",
    "weigh",
]
