"""Structured answers: the JSON in a response, which is voted on field by field."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from suffice.answers.extractor import Extractor
from suffice.answers.fields import FieldComparison
from suffice.answers.json_text import read_calls, read_json
from suffice.response import Response


def read_object(response: Response) -> Any:
    """The JSON in what a response says."""
    return read_json(response.said) if response.said else None


def read_tool_calls(response: Response) -> Any:
    """What a response calls, with its arguments; to call nothing is an answer too."""
    return read_calls(response.tool_calls)


@dataclass(frozen=True)
class Structure(Extractor):
    """Reads JSON; fields may be left out, or compared loosely, by JSON pointer; what is not allowed is no answer.

    >>> Structure().value(Response('It is {"year": 1815.0, "title": "Emma"}.'))
    {'year': 1815.0, 'title': 'Emma'}
    """

    read: Callable[[Response], Any] = read_object
    ignore: Sequence[str] = ()
    compare: Mapping[str, str] = field(default_factory=dict)
    allows: Callable[[Any], bool] | None = None

    def __post_init__(self) -> None:
        FieldComparison(self.ignore, self.compare)

    @property
    def exact(self) -> bool:  # type: ignore[override]
        """It has a spelling of its own."""
        return True

    @property
    def quick(self) -> bool:  # type: ignore[override]
        """A schema may take its time."""
        return self.allows is None

    @property
    def reads_tools(self) -> bool:  # type: ignore[override]
        """Whether it is tool calls that it reads."""
        return self.read is read_tool_calls

    @property
    def structure(self) -> "Structure":
        """Itself."""
        return self

    def ignoring(self, names: Iterable[str]) -> "Structure":
        """The same, less these fields; a name without a slash is one at the top."""
        pointers = tuple(name if name.startswith("/") else f"/{name}" for name in names)
        return replace(self, ignore=pointers)

    def comparing(self, compare: Mapping[str, str]) -> "Structure":
        """The same, with fields compared like this."""
        return replace(self, compare=compare)

    def value(self, response: Response) -> Any:
        """The JSON value, allowed or not; None where there is none."""
        return self.read(response) if response.is_complete else None

    def extract(self, response: Response) -> str | None:
        """The value in one spelling, if it is allowed."""
        value = self.value(response)
        return None if value is None or (self.allows and not self.allows(value)) else spelled(value)


def spelled(value: Any) -> str:
    """A JSON value as text, in one spelling."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
