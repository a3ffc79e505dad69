"""Options that are fields of dataclasses: each is declared once, with its help, where it is a setting."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin

import typer

from suffice.cli import completion

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Fields:
    """Says in a parameter's annotation that options are taken, which are fields of a dataclass and have their help.

    The command gets a dict of those that were given, and of the defaults that are given here; where the parameter is of
    the dataclass itself, what they make.
    """

    kind: type
    names: str = ""
    """Which fields, with spaces between; all that are not `file_only` by default."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Values in the place of those that the fields have; None for what the help shall not tell."""

    def options(self) -> list[inspect.Parameter]:
        """An option for each."""
        known = {one.name: one for one in fields(self.kind)}
        wanted = self.names.split() or [name for name, one in known.items() if not one.metadata["file_only"]]
        return [_option(known[name], self.defaults.get(name, known[name].default)) for name in wanted]


def with_fields(command: F) -> F:
    """A command with options in the place of parameters that stand for `Fields`, or whose default is a `setting`."""
    signature = inspect.signature(command)
    groups = {
        name: made
        for name, one in signature.parameters.items()
        for made in getattr(one.annotation, "__metadata__", ())
        if isinstance(made, Fields)
    }
    options = {name: made.options() for name, made in groups.items()}

    @wraps(command)
    def called(**given: Any) -> Any:
        for name, made in groups.items():
            values = {one.name: given.pop(one.name) for one in options[name]}
            told = {option: value for option, value in made.defaults.items() if value is not None}
            told |= {option: value for option, value in values.items() if value not in (None, [])}
            given[name] = made.kind(**told) if signature.parameters[name].annotation.__origin__ is made.kind else told
        return command(**given)

    own = [options.get(name, [_plain(one)]) for name, one in signature.parameters.items()]
    keyword = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for some in own for one in some]
    called.__signature__ = signature.replace(parameters=keyword)  # type: ignore[attr-defined]
    called.__annotations__ = {}
    return called  # type: ignore[return-value]


def _plain(parameter: inspect.Parameter) -> inspect.Parameter:
    """A parameter as it is; one whose default is a `setting` as an option."""
    told = parameter.default
    if not isinstance(told, Field):
        return parameter
    option = _typer_option(parameter.name, told, told.default, told.metadata["about"])
    return parameter.replace(annotation=Annotated[parameter.annotation, option], default=told.default)


def _option(field: Field[Any], default: Any) -> inspect.Parameter:
    """A field as an option that is None where it is not given."""
    kind: Any = field.type
    value = f"{default:g}" if isinstance(default, float) else default
    shown = "" if default in (None, "", ()) or isinstance(default, bool) else f"  [default: {value}]"
    several = any(get_origin(part) in (tuple, Sequence) for part in (kind, *get_args(kind)))
    plain = kind if kind in (bool, int, float) else next((one for one in (int, float, Path) if kind == one | None), str)
    told = _typer_option(field.name, field, default, field.metadata["about"] + shown)
    annotation = Annotated[list[str] | None if several else plain | None, told]  # type: ignore[valid-type]
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _typer_option(name: str, field: Field[Any], default: Any, about: str) -> Any:
    option = "--" + name.strip("_").replace("_", "-")
    return typer.Option(
        f"{option}/--no-{option[2:]}" if default is True else option,
        metavar=field.metadata["metavar"],
        help=about,
        autocompletion=completion.controllers if name == "controller" else None,
    )
