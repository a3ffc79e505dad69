"""Settings: fields that the command line shows, and values that are read from texts by their types."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints


def setting(default: Any, about: str, metavar: str | None = None) -> Any:
    """Declare a field of a dataclass that is an option of the command line: its help, and its value's placeholder."""
    return field(default=default, metadata={"about": about, "metavar": metavar})


def read_arguments(make: Any, text: str) -> dict[str, Any]:
    """Read `key=value,key=value` by the parameters and their types; ValueError says what is wrong."""
    kinds_read = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = {name: one for name, one in inspect.signature(make).parameters.items() if one.kind in kinds_read}
    hints = get_type_hints(make) | (get_type_hints(make.__init__) if inspect.isclass(make) else {})
    kinds = {name: accepted_types(hints.get(name, str))[0] for name in parameters}
    arguments: dict[str, Any] = {}
    for setting in text.split(",") if text else []:
        key, equals, value = setting.partition("=")
        if key not in parameters:
            readable = [one for name, one in parameters.items() if kinds[name] in READERS]
            known = ", ".join(map(_described, readable)) or "none"
            raise ValueError(f'no parameter "{key}"; its parameters and defaults are: {known}')
        if not equals or key in arguments:
            raise ValueError(f'give each parameter once, as key=value; "{setting}" is not that')
        if kinds[key] not in READERS:
            raise ValueError(f"{key} can't be given in a string: its type is none of those that can")
        wanted, read = READERS[kinds[key]]
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


def accepted_types(kind: Any) -> list[Any]:
    """Return the types that a value may have, but for None, without their annotations."""
    if get_origin(kind) is Annotated:
        return accepted_types(get_args(kind)[0])
    if get_origin(kind) in (UnionType, Union):
        return [one for part in get_args(kind) for one in accepted_types(part)]
    return [] if kind is NoneType else [kind]


READERS: dict[Any, tuple[str, Callable[[str], Any]]] = {
    str: ("text", str),
    int: ("a whole number", int),
    float: ("a number", float),
    bool: ("true or false", lambda text: {"true": True, "false": False}[text.lower()]),
    tuple[int, ...]: ("whole numbers joined by +", lambda text: tuple(map(int, text.split("+")))),
    Sequence: ("a list of texts", lambda text: [part.strip() for part in text.split(",")]),
    Mapping: ("a table of texts", lambda text: dict(part.strip().split("=", 1) for part in text.split(","))),
}
"""By type: its name in an error, and what reads a value of it; KeyError or ValueError where it is none."""
