"""Settings: fields that say what they are, and values that are written as `key=value,key=value`."""

import inspect
from collections.abc import Callable
from dataclasses import field
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from suffice.errors import OptionError

T = TypeVar("T")


def setting(default: Any, about: str, metavar: str | None = None) -> Any:
    """A field of a dataclass that says what it is, to the command line.

    Args:
        default: What it is where nothing is said.
        about: A sentence for the help.
        metavar: What stands for its value there; a word made from its name and type by default.

    >>> from dataclasses import dataclass, fields
    >>> @dataclass
    ... class Lamp:
    ...     watts: int = setting(5, "How bright it is.")
    >>> Lamp().watts, fields(Lamp)[0].metadata["about"]
    (5, 'How bright it is.')
    """
    return field(default=default, metadata={"about": about, "metavar": metavar})


def from_text(make: Callable[..., T], text: str, argument: str) -> T:
    """What is made of a text like `key=value,key=value`.

    Args:
        make: A class or function; its parameters are the keys, and their types say how values are read.
        text: The text.
        argument: What it is the value of, for the error.

    Raises:
        OptionError: where there is no such key, a value can't be read, or `make` refuses it.

    >>> from suffice import Penalties
    >>> from_text(Penalties, "draw=cheap", "penalties")
    Traceback (most recent call last):
    ...
    suffice.errors.OptionError: penalties can't be "draw=cheap": draw must be a number, not "cheap"
    """
    try:
        return make(**read_arguments(make, text))
    except (OptionError, TypeError, ValueError) as error:
        raise OptionError(f'can\'t be "{text}": {error}', argument) from None


def read_arguments(make: Any, text: str) -> dict[str, Any]:
    """Read `key=value,key=value` by the parameters and their types; ValueError says what is wrong."""
    parameters = {
        name: parameter
        for name, parameter in inspect.signature(make).parameters.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }
    types = get_type_hints(make)
    if inspect.isclass(make):  # these are of its fields; those of its constructor count more
        types |= get_type_hints(make.__init__)
    arguments: dict[str, Any] = {}
    for setting in text.split(",") if text else []:
        key, equals, value = setting.partition("=")
        if key not in parameters:
            readable = [parameter for name, parameter in parameters.items() if _plain(types.get(name, str)) in READERS]
            known = ", ".join(map(_described, readable)) or "none"
            raise ValueError(f'no parameter "{key}"; its parameters and defaults are: {known}')
        if not equals or key in arguments:
            raise ValueError(f'give each parameter once, as key=value; "{setting}" is not that')
        kind = _plain(types.get(key, str))
        if kind not in READERS:
            raise ValueError(f"{key} can't be given in a string: its type is none of those that can")
        read, wanted = READERS[kind]
        try:
            arguments[key] = read(value)
        except (KeyError, ValueError):
            raise ValueError(f'{key} must be {wanted}, not "{value}"') from None
    for parameter in parameters.values():
        if parameter.default is parameter.empty and parameter.name not in arguments:
            raise ValueError(f"{parameter.name} must be given")
    return arguments


def _described(parameter: inspect.Parameter) -> str:
    return parameter.name if parameter.default in (None, parameter.empty) else f"{parameter.name} ({parameter.default})"


def _plain(kind: Any) -> Any:
    """What an optional type is when it is given."""
    optional = get_origin(kind) in (UnionType, Union)
    return next(part for part in get_args(kind) if part is not type(None)) if optional else kind


READERS: dict[Any, tuple[Callable[[str], Any], str]] = {
    str: (str, "text"),
    int: (int, "a whole number"),
    float: (float, "a number"),
    bool: (lambda text: {"true": True, "false": False}[text.lower()], "true or false"),
    tuple[int, ...]: (lambda text: tuple(map(int, text.split("+"))), "whole numbers joined by +"),
}
"""For a type, how a text is read, and what it must be."""
