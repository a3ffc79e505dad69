"""Controllers: the interface, the published rules, and names for them."""

from suffice.controllers import boinf, rules
from suffice.controllers.base import ArrayController, Controller
from suffice.controllers.registry import controller_names, get_controller, register

__all__ = [
    "ArrayController",
    "Controller",
    "boinf",
    "controller_names",
    "get_controller",
    "register",
    "rules",
]
