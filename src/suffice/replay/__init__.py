"""Replay: running controllers over a pool as if it were live, all on the same draws."""

from suffice.replay.calibration import certainty_reliability
from suffice.replay.evaluate import (
    METRICS,
    Comparison,
    Difference,
    Result,
    difference,
    evaluate,
    mean_over_pools,
    reliabilities,
)
from suffice.replay.flow import Clocked, flow_one, rounds_one
from suffice.replay.reliability import Reliability, pooled
from suffice.replay.run import Outcomes, replay, replay_arrays, replay_one_by_one, run

__all__ = [
    "METRICS",
    "Clocked",
    "Comparison",
    "Difference",
    "Outcomes",
    "Reliability",
    "Result",
    "certainty_reliability",
    "difference",
    "evaluate",
    "flow_one",
    "mean_over_pools",
    "pooled",
    "reliabilities",
    "replay",
    "replay_arrays",
    "replay_one_by_one",
    "rounds_one",
    "run",
]
