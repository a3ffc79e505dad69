"""From names to controllers: `NAME`, `NAME:key=value,key=value` or `file:PATH`, the same string everywhere."""

from collections.abc import Callable
from typing import TypeVar

from suffice.controllers.base import Controller, import_planner
from suffice.controllers.files import load_controller
from suffice.errors import ControllerError
from suffice.registry import Registry, classes_of

C = TypeVar("C", bound=type[Controller])


_registry = Registry[Controller]("controller", "suffice.controllers", ControllerError, classes_of(Controller, "decide"))
_registry.register("file", rest="PATH")(load_controller)


def register(name: str) -> Callable[[C], C]:
    """Make a controller class usable by name; its parameters are the arguments of its constructor.

    Args:
        name: Lower-case letters, digits, "-" and "_".

    Returns:
        A decorator for the class, which it leaves as it is.

    Raises:
        ControllerError: Where the name can't be one or is taken, or the class is no controller.

    >>> @register("example-always")
    ... class Always(Controller):
    ...     def __init__(self, draws: int = 3):
    ...         self.draws = draws
    ...
    ...     def decide(self, tally):
    ...         return self.draws - tally.draws
    >>> get_controller("example-always:draws=5").draws
    5
    """
    return _registry.register(name)


def controller_names() -> list[str]:
    """The names that can be asked for, those of other packages among them, sorted.

    >>> {"asc", "plan", "rl"} <= set(controller_names())
    True
    """
    import_planner()
    return _registry.names()


def get_controller(spec: str | Controller) -> Controller:
    """The controller that a string describes; a controller is returned as it is.

    Args:
        spec: `NAME`, `NAME:key=value,key=value` or `file:PATH`, or a controller.

    Raises:
        ControllerError: Where there is no such controller, parameter or file.

    >>> get_controller("asc:threshold=0.9")
    AdaptiveSelfConsistency(threshold=0.9)
    """
    if isinstance(spec, Controller):
        return spec
    import_planner()
    return _registry.get(spec)
