"""`Options`: settings that pydantic checks when they are made; an error is one sentence that names the setting."""

import operator
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, Literal, Self, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from suffice.errors import OptionError
from suffice.settings import READERS, accepted_types


def option(default: Any, about: str, metavar: str | None = None, *, file_only: bool = False, **bounds: Any) -> Any:
    """Declare a field of `Options`, as `setting` does for dataclasses; `bounds` are pydantic's, as `ge=1`.

    A `file_only` one is set in a configuration file alone, and has no option.
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
    """
    read = dict(given)
    for name in given.keys() & kind.model_fields.keys():
        kinds = [get_origin(one) or one for one in accepted_types(kind.model_fields[name].annotation)]
        first = next((one for one in kinds if one in READERS), str)
        if isinstance(given[name], str):
            with suppress(KeyError, ValueError):
                read[name] = READERS[first][1](given[name])
    return read


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


_BOUNDS = {
    "ge": ", at least {}",
    "gt": " above {}",
    "le": " and at most {}",
    "lt": " and below {}",
    "max_length": " of at most {} characters",
}


def _accepted(field: FieldInfo) -> str:
    """Describe the values of a field by its type and its bounds."""
    bounds = [
        text.format(f"{getattr(bound, name):g}".replace("e+0", "e"))
        for bound in field.metadata
        for name, text in _BOUNDS.items()
        if getattr(bound, name, None) is not None
    ]
    return " or ".join(map(_kind, accepted_types(field.annotation))) + "".join(bounds)


def _kind(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return f"one of {', '.join(get_args(kind))}"
    known = READERS.get(get_origin(kind) or kind)
    return known[0] if known else str(getattr(kind, "__name__", kind))
