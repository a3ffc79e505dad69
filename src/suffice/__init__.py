"""Ask your LLM just enough times.

`sample` asks a server for an answer and `parse` for an object, with `asample` and `aparse` for asyncio; `evaluate`,
`compare` and `advise` replay controllers over pools, which `import_pool` makes of others' files; `register` adds a
controller of yours, `suffice.answers.register_extractor` a way to find answers, and `suffice.testing` checks them.
Every name is in docs/api.md with an example.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a name is exported by its alias, as PEP 484 has it
    from suffice import answers as answers
    from suffice.controllers import ArrayController as ArrayController
    from suffice.controllers import ConditionedController as ConditionedController
    from suffice.controllers import Controller as Controller
    from suffice.controllers import LearnedController as LearnedController
    from suffice.controllers import SavedController as SavedController
    from suffice.controllers import controller_names as controller_names
    from suffice.controllers import get_controller as get_controller
    from suffice.controllers import load_controller as load_controller
    from suffice.controllers import register as register
    from suffice.controllers import save_controller as save_controller
    from suffice.controllers import shipped_controllers as shipped_controllers
    from suffice.errors import CapReachedError as CapReachedError
    from suffice.errors import ControllerError as ControllerError
    from suffice.errors import GaveUpError as GaveUpError
    from suffice.errors import OptionError as OptionError
    from suffice.errors import PoolError as PoolError
    from suffice.errors import SampleError as SampleError
    from suffice.errors import SufficeError as SufficeError
    from suffice.flow import Flow as Flow
    from suffice.importing import Imported as Imported
    from suffice.importing import import_pool as import_pool
    from suffice.live import LocalServer as LocalServer
    from suffice.live import Outcome as Outcome
    from suffice.live import Sampling as Sampling
    from suffice.live import aparse as aparse
    from suffice.live import asample as asample
    from suffice.live import parse as parse
    from suffice.live import sample as sample
    from suffice.live import trace as trace
    from suffice.penalties import Costs as Costs
    from suffice.penalties import Penalties as Penalties
    from suffice.planning import Plan as Plan
    from suffice.planning import certainty as certainty
    from suffice.planning import confidence as confidence
    from suffice.planning.right import Calibration as Calibration
    from suffice.planning.right import load_calibration as load_calibration
    from suffice.pools import Pool as Pool
    from suffice.pools import Question as Question
    from suffice.pools import Summary as Summary
    from suffice.pools import bundled_pools as bundled_pools
    from suffice.pools import load_pool as load_pool
    from suffice.pools import summarise as summarise
    from suffice.replay import Advice as Advice
    from suffice.replay import Choice as Choice
    from suffice.replay import Comparison as Comparison
    from suffice.replay import Difference as Difference
    from suffice.replay import Result as Result
    from suffice.replay import advise as advise
    from suffice.replay import compare as compare
    from suffice.replay import difference as difference
    from suffice.replay import evaluate as evaluate
    from suffice.replay.calibrating import calibrate as calibrate
    from suffice.response import Response as Response
    from suffice.tally import Tallies as Tallies
    from suffice.tally import Tally as Tally

__version__ = "0.2.0"

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

__all__ = sorted(["answers", *_ROOMS])


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
