"""Replay: running controllers over pools as if it were live, all on the same draws."""

from suffice.replay.advise import Advice, Choice, advise
from suffice.replay.calibration import certainty_reliabilities, certainty_reliability, confidence_reliability
from suffice.replay.compare import Comparison, Difference, compare, difference, paired, reliabilities
from suffice.replay.evaluate import DEFAULT_REPEATS, METRICS, Result, evaluate, executor_for, mean_over_pools
from suffice.replay.flow import Clocked, flow_one, rounds_one
from suffice.replay.learning import Course, Lesson, bends, learn_prior, replay_learning, serve
from suffice.replay.reliability import Reliability, pooled
from suffice.replay.run import Outcomes, replay, replay_arrays, replay_one_by_one, run
from suffice.replay.weighing import Weighed, weigh

__all__ = [
    "DEFAULT_REPEATS",
    "METRICS",
    "Advice",
    "Choice",
    "Clocked",
    "Comparison",
    "Course",
    "Difference",
    "Lesson",
    "Outcomes",
    "Reliability",
    "Result",
    "Weighed",
    "advise",
    "bends",
    "certainty_reliabilities",
    "certainty_reliability",
    "compare",
    "confidence_reliability",
    "difference",
    "evaluate",
    "executor_for",
    "flow_one",
    "learn_prior",
    "mean_over_pools",
    "paired",
    "pooled",
    "reliabilities",
    "replay",
    "replay_arrays",
    "replay_learning",
    "replay_one_by_one",
    "rounds_one",
    "run",
    "serve",
    "weigh",
]
