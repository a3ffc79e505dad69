"""Tool calls as answers: what an agent is about to do, in one spelling."""

from collections.abc import Iterable
from typing import Any

from suffice.answers.extractor import Extractor, register_extractor
from suffice.answers.structure import Structure, read_tool_calls, spelled
from suffice.errors import OptionError
from suffice.response import Response

NO_CALL = "no tool call"
"""The answer of a response that calls none."""


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
        """The same, less arguments of these names."""
        return ToolExtractor(self._names_only, names)

    def extract(self, response: Response) -> str | None:
        """The calls in one spelling, None where they can't be read; to call none is a choice with votes of its own."""
        calls = read_tool_calls(response) if response.is_complete else None
        return None if calls is None else " ".join(map(self._call, calls)) or NO_CALL

    def _call(self, call: dict[str, Any]) -> str:
        if self._names_only:
            return str(call["name"])
        kept = {name: value for name, value in call["arguments"].items() if name not in self._ignore}
        return f"{call['name']}({spelled(_plain(kept))})"


def _plain(value: Any) -> Any:
    """The same value, with whole numbers written as such."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


_FORMS = {"": ToolExtractor(), "name": ToolExtractor(names_only=True), "fields": Structure(read_tool_calls)}


@register_extractor("tool", rest="name|fields")
def tool_extractor(form: str = "") -> Extractor:
    """The calls as a whole, their names alone, or their arguments field by field."""
    if form not in _FORMS:
        raise OptionError(f'unknown extractor "tool:{form}": for tool calls there are tool, tool:name and tool:fields')
    return _FORMS[form]
