"""`Options`: settings that pydantic checks when they are made; an error is one sentence that names the setting."""

import operator
from collections.abc import Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Self, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from suffice.errors import OptionError
from suffice.settings import READERS


def option(default: Any, about: str, metavar: str | None = None, *, file_only: bool = False, **bounds: Any) -> Any:
    """Declare a field of `Options`.

    Args:
        default: The value where none is given.
        about: The sentence in the help of the command line.
        metavar: The placeholder of the value there; derived from the name and the type by default.
        file_only: Whether it is set in a configuration file alone, and has no option.
        bounds: What pydantic's `Field` checks, as `ge=1`.
    """
    return Field(default, description=about, json_schema_extra={"metavar": metavar, "file_only": file_only}, **bounds)


def _index(value: Any) -> Any:
    return value if isinstance(value, bool) or not hasattr(value, "__index__") else operator.index(value)


Whole = Annotated[int, BeforeValidator(_index)]
"""A whole number; numpy's are taken too."""


class Options(BaseModel):
    """Immutable settings. A value of another type or out of bounds, and an unknown name, raise an OptionError.

    >>> class Lamp(Options):
    ...     watts: int = option(5, "The brightness.", ge=1)
    >>> Lamp(watts=7).replaced(watts=0)
    Traceback (most recent call last):
    ...
    suffice.errors.OptionError: watts must be a whole number, at least 1, not 0
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, arbitrary_types_allowed=True, allow_inf_nan=False
    )

    def __init__(self, **given: Any) -> None:
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise option_error(type(self), error) from None

    @property
    def given(self) -> dict[str, Any]:
        """The fields that were set, in the order of their declaration."""
        return {name: getattr(self, name) for name in type(self).model_fields if name in self.model_fields_set}

    def replaced(self, **changes: Any) -> Self:
        """Return a copy with other values, checked again."""
        return type(self)(**self.given | changes)


def read_texts(kind: type[Options], given: Mapping[str, Any]) -> dict[str, Any]:
    """Read settings that are texts, as headers are, by the types of their fields.

    A text that can't be read stays, and is refused when the settings are made.

    >>> class Lamp(Options):
    ...     watts: int = 5
    ...     names: Sequence[str] = ()
    >>> read_texts(Lamp, {"watts": "7", "names": "left, right"})
    {'watts': 7, 'names': ['left', 'right']}
    """
    fields = kind.model_fields
    return {
        name: _of_text(value, _parts(fields[name])) if isinstance(value, str) and name in fields else value
        for name, value in given.items()
    }


def _of_text(text: str, kinds: Sequence[Any]) -> Any:
    parts = [part.strip() for part in text.split(",")]
    try:
        for kind in kinds:
            if get_origin(kind) is Sequence:
                return parts
            if get_origin(kind) is Mapping:
                return dict(part.split("=", 1) for part in parts)
            if kind in READERS:
                return READERS[kind][0](text)
    except (KeyError, ValueError):
        pass
    return text


def option_error(kind: type[BaseModel], error: ValidationError) -> OptionError:
    """Return the first complaint of pydantic as a sentence: the field, the values that it takes, the one that came."""
    first = error.errors()[0]
    name = str(first["loc"][0])
    if first["type"] == "extra_forbidden":
        return OptionError(f'there is no setting "{name}"; there are {", ".join(kind.model_fields)}')
    if first["type"] == "value_error":
        return OptionError(str(first["ctx"]["error"]), name)
    value = f'"{first["input"]}"' if isinstance(first["input"], str) else repr(first["input"])
    return OptionError(f"must be {_accepted(kind.model_fields[name])}, not {value}", name)


_KINDS = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text",
    Sequence: "a list of texts",
    Mapping: "a table of texts",
}
_BOUNDS = {"ge": ", at least {}", "gt": " above {}", "le": " and at most {}", "lt": " and below {}"}


def _accepted(field: FieldInfo) -> str:
    """Describe the values of a field by its type and its bounds.

    >>> _accepted(FieldInfo(annotation=float, ge=0, le=1))
    'a number, at least 0 and at most 1'
    """
    bounds = [
        text.format(f"{getattr(bound, name):g}".replace("e+0", "e"))
        for bound in field.metadata
        for name, text in _BOUNDS.items()
        if getattr(bound, name, None) is not None
    ]
    length = [f" of at most {one.max_length} characters" for one in field.metadata if hasattr(one, "max_length")]
    return " or ".join(map(_kind, _parts(field))) + "".join(bounds + length)


def _parts(field: FieldInfo) -> list[Any]:
    """The types that a value may have, but for None."""
    union = get_origin(field.annotation) in (UnionType, Union)
    return [kind for kind in (get_args(field.annotation) if union else [field.annotation]) if kind is not NoneType]


def _kind(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return f"one of {', '.join(get_args(kind))}"
    return str(_KINDS.get(get_origin(kind) or kind) or getattr(kind, "__name__", kind))
