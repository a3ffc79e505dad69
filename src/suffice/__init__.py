"""Ask your LLM just enough times.

`sample` asks a server for an answer and `parse` for an object, with `asample` and `aparse` for asyncio; `evaluate`,
`compare` and `advise` replay controllers over pools, which `import_pool` makes of others' files; `register` adds a
controller of yours, `suffice.answers.register_extractor` a way to find answers, and `suffice.testing` checks them.
Every name is in docs/api.md with an example.
"""

import importlib
from typing import TYPE_CHECKING, Any

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
from suffice.penalties import Costs, Penalties
from suffice.planning import Plan, certainty, confidence
from suffice.pools import Pool, Question, Summary, bundled_pools, load_pool, summarise
from suffice.replay import Advice, Choice, Comparison, Difference, Result, advise, compare, difference, evaluate
from suffice.response import Response
from suffice.tally import Tallies, Tally

if TYPE_CHECKING:
    from suffice.live import LocalServer, Outcome, aparse, asample, parse, sample, trace

__version__ = "0.1.0"

__all__ = [
    "Advice",
    "ArrayController",
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
    "certainty",
    "compare",
    "confidence",
    "controller_names",
    "difference",
    "evaluate",
    "get_controller",
    "import_pool",
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


_LAZY = ("LocalServer", "Outcome", "aparse", "asample", "parse", "sample", "trace")
"""What samples a server is imported when it is first used: most who evaluate never need it."""


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module("suffice.live"), name)
    raise AttributeError(f"module 'suffice' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
