"""Ask your LLM just enough times.

`sample` asks a server for an answer and `parse` for an object, with `asample` and `aparse` for asyncio; `evaluate`,
`compare` and `advise` replay controllers over pools, which `import_pool` makes of others' files; `register` adds a
controller of yours, `suffice.answers.register_extractor` a way to find answers, and `suffice.testing` checks them.
Every name is in docs/api.md with an example.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from suffice import answers
    from suffice.controllers import (
        ArrayController,
        ConditionedController,
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
    from suffice.errors import (
        CapReachedError,
        ControllerError,
        GaveUpError,
        OptionError,
        PoolError,
        SampleError,
        SufficeError,
    )
    from suffice.flow import Flow
    from suffice.importing import Imported, import_pool
    from suffice.live import LocalServer, Outcome, Sampling, aparse, asample, parse, sample, trace
    from suffice.penalties import Costs, Penalties
    from suffice.planning import Plan, certainty, confidence
    from suffice.planning.right import Calibration, load_calibration
    from suffice.pools import Pool, Question, Summary, bundled_pools, load_pool, summarise
    from suffice.replay import Advice, Choice, Comparison, Difference, Result, advise, compare, difference, evaluate
    from suffice.replay.calibrating import calibrate
    from suffice.response import Response
    from suffice.tally import Tallies, Tally

__version__ = "0.2.0"

__all__ = [
    "Advice",
    "ArrayController",
    "Calibration",
    "CapReachedError",
    "Choice",
    "Comparison",
    "ConditionedController",
    "Controller",
    "ControllerError",
    "Costs",
    "Difference",
    "Flow",
    "GaveUpError",
    "Imported",
    "LearnedController",
    "LocalServer",
    "OptionError",
    "Outcome",
    "Penalties",
    "Plan",
    "Pool",
    "PoolError",
    "Question",
    "Response",
    "Result",
    "SampleError",
    "Sampling",
    "SavedController",
    "SufficeError",
    "Summary",
    "Tallies",
    "Tally",
    "advise",
    "answers",
    "aparse",
    "asample",
    "bundled_pools",
    "calibrate",
    "certainty",
    "compare",
    "confidence",
    "controller_names",
    "difference",
    "evaluate",
    "get_controller",
    "import_pool",
    "load_calibration",
    "load_controller",
    "load_pool",
    "parse",
    "register",
    "sample",
    "save_controller",
    "shipped_controllers",
    "summarise",
    "trace",
]

_NAMES_BY_ROOM = {
    "controllers": """ArrayController ConditionedController Controller LearnedController SavedController
        controller_names get_controller load_controller register save_controller shipped_controllers""",
    "errors": "CapReachedError ControllerError GaveUpError OptionError PoolError SampleError SufficeError",
    "flow": "Flow",
    "importing": "Imported import_pool",
    "live": "LocalServer Outcome Sampling aparse asample parse sample trace",
    "penalties": "Costs Penalties",
    "planning": "Plan certainty confidence",
    "planning.right": "Calibration load_calibration",
    "pools": "Pool Question Summary bundled_pools load_pool summarise",
    "replay": "Advice Choice Comparison Difference Result advise compare difference evaluate",
    "replay.calibrating": "calibrate",
    "response": "Response",
    "tally": "Tallies Tally",
}
_ROOMS = {name: room for room, names in _NAMES_BY_ROOM.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """A room is imported when one of its names is first used: nobody needs all of them."""
    if name == "answers":
        return importlib.import_module("suffice.answers")
    if name not in _ROOMS:
        raise AttributeError(f"module 'suffice' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"suffice.{_ROOMS[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
