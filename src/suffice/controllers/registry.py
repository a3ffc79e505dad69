"""From names to controllers: `NAME`, `NAME:key=value,key=value` or `file:PATH`, the same string everywhere."""

import inspect
import re
from collections.abc import Callable
from difflib import get_close_matches
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from suffice.controllers.base import Controller
from suffice.controllers.files import load_controller
from suffice.errors import ControllerError

C = TypeVar("C", bound=type[Controller])

_registered: dict[str, type[Controller]] = {}


def register(name: str) -> Callable[[C], C]:
    """Make a controller class usable by name; its parameters are the arguments of its constructor."""
    if not re.fullmatch(r"[a-z][a-z0-9_-]*", name) or name == "file":
        raise ControllerError(f'"{name}" can\'t name a controller: use lower-case letters, digits, "-" and "_"')

    def add(controller: C) -> C:
        if not (isinstance(controller, type) and issubclass(controller, Controller)) or inspect.isabstract(controller):
            raise ControllerError(f'"{name}" must be a class of Controller with a decide method')
        taken = _registered.get(name)
        if taken is not None and (taken.__module__, taken.__qualname__) != (
            controller.__module__,
            controller.__qualname__,
        ):
            raise ControllerError(f'there is already a controller "{name}", in {taken.__module__}: choose another name')
        _registered[name] = controller
        return controller

    return add


def controller_names() -> list[str]:
    """The names that are registered, sorted."""
    return sorted(_registered)


def get_controller(spec: str | Controller) -> Controller:
    """The controller that a string describes; a controller is returned as it is.

    >>> get_controller("asc:threshold=0.9")
    AdaptiveSelfConsistency(threshold=0.9)
    """
    if isinstance(spec, Controller):
        return spec
    name, _, settings = spec.partition(":")
    if name == "file":
        return load_controller(settings)
    if name not in _registered:
        near = get_close_matches(name, _registered, n=1)
        hint = f'; did you mean "{near[0]}"?' if near else ""
        raise ControllerError(f'unknown controller "{name}": there are {", ".join(controller_names())}{hint}')
    controller = _registered[name]
    try:
        return controller(**_arguments(controller, settings))
    except (ControllerError, TypeError, ValueError) as error:
        raise ControllerError(f'controller "{spec}": {error}') from None


def _arguments(controller: type[Controller], settings: str) -> dict[str, Any]:
    """Read `key=value,key=value` by the constructor's parameters and their types."""
    parameters = {
        name: parameter
        for name, parameter in inspect.signature(controller).parameters.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }
    types = get_type_hints(controller.__init__) | get_type_hints(controller)
    arguments: dict[str, Any] = {}
    for setting in settings.split(",") if settings else []:
        key, equals, value = setting.partition("=")
        if key not in parameters:
            readable = [parameter for name, parameter in parameters.items() if _plain(types.get(name, str)) in _READERS]
            known = ", ".join(map(_described, readable)) or "none"
            raise ControllerError(f'no parameter "{key}"; its parameters and defaults are: {known}')
        if not equals or key in arguments:
            raise ControllerError(f'give each parameter once, as key=value; "{setting}" is not that')
        arguments[key] = _read(key, value, types.get(key, str))
    for parameter in parameters.values():
        if parameter.default is parameter.empty and parameter.name not in arguments:
            raise ControllerError(f"{parameter.name} must be given")
    return arguments


def _described(parameter: inspect.Parameter) -> str:
    return parameter.name if parameter.default in (None, parameter.empty) else f"{parameter.name} ({parameter.default})"


def _plain(kind: Any) -> Any:
    """What an optional type is when it is given."""
    optional = get_origin(kind) in (UnionType, Union)
    return next(part for part in get_args(kind) if part is not type(None)) if optional else kind


def _read(key: str, text: str, kind: Any) -> Any:
    """A value of this type."""
    kind = _plain(kind)
    if kind not in _READERS:
        raise ControllerError(f"{key} can't be given in a string: its type is none of those that can")
    convert, wanted = _READERS[kind]
    try:
        return convert(text)
    except (KeyError, ValueError):
        raise ControllerError(f'{key} must be {wanted}, not "{text}"') from None


_READERS: dict[Any, tuple[Callable[[str], Any], str]] = {
    str: (str, "text"),
    int: (int, "a whole number"),
    float: (float, "a number"),
    bool: ({"true": True, "false": False}.__getitem__, "true or false"),
    tuple[int, ...]: (lambda text: tuple(map(int, text.split("+"))), "whole numbers joined by +"),
}
