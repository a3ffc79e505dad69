"""Structured answers: JSON, voted on field by field, and tool calls."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from suffice.answers.extractor import Extractor, register_extractor
from suffice.answers.words import ANSWER, folded, is_unspaced
from suffice.errors import OptionError
from suffice.json_values import check_compared, is_bounded, leaves, read_json, split_pointer
from suffice.response import Response

_WORDS, _SIGNS = 3, 12  # words, or signs, of a label


def read_object(response: Response) -> Any:
    return read_json(response.said) if response.said else None


def read_calls(response: Response) -> list[dict[str, Any]] | None:
    """Return names and arguments of tool calls; None if unreadable."""
    try:
        calls = [
            {"name": call["function"]["name"], "arguments": read_json(call["function"].get("arguments") or "{}")}
            for call in response.tool_calls or ()
        ]
    except (TypeError, LookupError, AttributeError):
        return None
    readable = all(isinstance(call["name"], str) and isinstance(call["arguments"], dict) for call in calls)
    return calls if readable and is_bounded(calls) else None


@dataclass
class Structure(Extractor):
    """Reads JSON; fields may be left out, or compared loosely, by JSON pointer; what is not allowed is no answer.

    >>> Structure().value(Response('It is {"year": 1815.0, "title": "Emma"}.'))
    {'year': 1815.0, 'title': 'Emma'}
    """

    exact = True

    read: Callable[[Response], Any] = read_object
    ignore: Sequence[str] = ()
    compare: Mapping[str, str] = field(default_factory=dict)
    allows: Callable[[Any], bool] | None = None
    material: str = ""
    """The request, from which texts may be taken over."""
    compose: bool = False
    """Whether an object may come back that nobody said, put together from the elected fields."""

    def __post_init__(self) -> None:
        check_compared(self.compare)
        for pointer in self.ignore:
            split_pointer(pointer, "ignore")
        self.quick = self.allows is None  # a schema may take its time
        self.reads_tools = self.read is read_calls
        self.kind = "tool" if self.reads_tools else "schema"

    def for_request(self, messages: Sequence[Mapping[str, Any]], **about: Any) -> "Structure":
        return replace(self, material="\n".join(map(str, messages)))

    def for_scout(self, scout: Response) -> "Structure | None":
        """Return itself where at least half of the leaves are data: numbers, booleans, and texts that the request has.

        Of longer texts there may be one, beside a field that is called what answers are.
        """
        value = self.value(scout)
        if self.reads_tools or not isinstance(value, dict | list):
            return self if self.extract(scout) is not None else None
        said = leaves(value)
        data = [pointer for pointer, leaf in said.items() if not isinstance(leaf, str) or leaf in self.material]
        texts = sum(isinstance(leaf, str) and pointer not in data and _is_text(leaf) for pointer, leaf in said.items())
        is_answer = any(ANSWER.occur_in(folded(pointer)) for pointer in data)
        return self if data and 2 * len(data) >= len(said) and texts <= is_answer else None

    @property
    def structure(self) -> "Structure":
        return self

    def ignoring(self, names: Iterable[str]) -> "Structure":
        """The same, less these fields; a name without a slash is one at the top."""
        pointers = tuple(name if name.startswith("/") else f"/{name}" for name in names)
        return replace(self, ignore=pointers)

    def comparing(self, compare: Mapping[str, str]) -> "Structure":
        return replace(self, compare=compare)

    def value(self, response: Response) -> Any:
        """The JSON value, allowed or not; None where there is none."""
        return self.read(response) if response.is_complete else None

    def extract(self, response: Response) -> str | None:
        value = self.value(response)
        return None if value is None or (self.allows and not self.allows(value)) else spelled(value)


def _is_text(leaf: str) -> bool:
    """Whether a leaf is a sentence or more than a few words."""
    return (
        leaf.rstrip().endswith((".", "?", "!")) or len(leaf) > _SIGNS
        if is_unspaced(leaf)
        else len(leaf.split()) > _WORDS
    )


def spelled(value: Any) -> str:
    """A JSON value as text, in one spelling."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


NO_CALL = "no tool call"  # an answer too


class ToolExtractor(Extractor):
    """Reads a response's tool calls: their names and arguments, or the names alone, less arguments to ignore.

    >>> call = {"function": {"name": "add", "arguments": '{"b": 2.0, "a": 1}'}}
    >>> ToolExtractor().extract(Response(None, tool_calls=[call])), ToolExtractor().extract(Response("Done."))
    ('add({"a": 1, "b": 2})', 'no tool call')
    """

    exact = True
    quick = True
    reads_tools = True
    kind = "tool"

    def __init__(self, names_only: bool = False, ignore: Iterable[str] = ()) -> None:
        self._names_only = names_only
        self._ignore = frozenset(ignore)

    def ignoring(self, names: Iterable[str]) -> "ToolExtractor":
        return ToolExtractor(self._names_only, names)

    def extract(self, response: Response) -> str | None:
        """The calls in one spelling, None where they can't be read; to call none is a choice with votes of its own."""
        calls = read_calls(response) if response.is_complete else None
        return None if calls is None else " ".join(map(self._call, calls)) or NO_CALL

    def _call(self, call: dict[str, Any]) -> str:
        if self._names_only:
            return str(call["name"])
        kept = {name: value for name, value in call["arguments"].items() if name not in self._ignore}
        return f"{call['name']}({spelled(_plain(kept))})"


def _plain(value: Any) -> Any:
    """The same value, with whole numbers written as such."""
    if isinstance(value, dict | list):
        named = value.items() if isinstance(value, dict) else enumerate(value)
        parts = {name: _plain(part) for name, part in named}
        return parts if isinstance(value, dict) else [*parts.values()]
    return int(value) if isinstance(value, float) and value.is_integer() else value


_FORMS = {"": ToolExtractor(), "name": ToolExtractor(names_only=True), "fields": Structure(read_calls)}


@register_extractor("tool", rest="name|fields")
def tool_extractor(form: str = "") -> Extractor:
    """The calls as a whole, their names alone, or their arguments field by field."""
    if form not in _FORMS:
        raise OptionError(f'unknown extractor "tool:{form}": for tool calls there are tool, tool:name and tool:fields')
    return _FORMS[form]
