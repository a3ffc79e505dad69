"""Ask your LLM just enough times."""

from suffice.controllers import (
    ArrayController,
    Controller,
    LearnedController,
    SavedController,
    controller_names,
    get_controller,
    load_controller,
    register,
    save_controller,
    shipped_controllers,
)
from suffice.errors import ControllerError, OptionError, PoolError, SufficeError
from suffice.penalties import Costs, Penalties
from suffice.planning import Plan, confidence
from suffice.pools import Pool, Question, Summary, bundled_pools, load_pool, summarise
from suffice.replay import Difference, Result, difference, evaluate
from suffice.tally import Tallies, Tally

__version__ = "0.1.0"

__all__ = [
    "ArrayController",
    "Controller",
    "ControllerError",
    "Costs",
    "Difference",
    "LearnedController",
    "OptionError",
    "Penalties",
    "Plan",
    "Pool",
    "PoolError",
    "Question",
    "Result",
    "SavedController",
    "SufficeError",
    "Summary",
    "Tallies",
    "Tally",
    "bundled_pools",
    "confidence",
    "controller_names",
    "difference",
    "evaluate",
    "get_controller",
    "load_controller",
    "load_pool",
    "register",
    "save_controller",
    "shipped_controllers",
    "summarise",
]
