"""Controllers: the interface, the published rules, the learned ones, and names for them."""

from suffice.controllers import rules
from suffice.controllers.base import ArrayController, Controller, question_random
from suffice.controllers.conditioned import ConditionedController, shipped_controllers
from suffice.controllers.files import (
    FORMAT,
    SavedController,
    controller_names,
    file_kind,
    get_controller,
    load_controller,
    register,
    save_controller,
)
from suffice.controllers.learned import LearnedController

__all__ = [
    "FORMAT",
    "ArrayController",
    "ConditionedController",
    "Controller",
    "LearnedController",
    "SavedController",
    "controller_names",
    "file_kind",
    "get_controller",
    "load_controller",
    "question_random",
    "register",
    "rules",
    "save_controller",
    "shipped_controllers",
]
