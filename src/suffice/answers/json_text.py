"""JSON in a response's text, read within bounds: what is too long, too deep or not plain JSON is no answer."""

import json
import math
import re
from collections.abc import Iterable
from typing import Any

from suffice.answers.prose import FENCE

LONGEST = 1_000_000
"""Characters of a text in which JSON is looked for; a longer one has no answer."""

DEEPEST = 64
"""Objects and lists within one another; a value that goes deeper is none."""

MOST_VALUES = 10_000
"""Values within a value, itself and those within those counted; one with more is none."""

MOST_BITS = 4_000
"""Bits of a whole number."""

_MOST_BROKEN = 200
"""Fences and objects that may be no JSON before the text is held to have none: each takes its time."""

_OBJECT = re.compile(r'\{(?=\s*["}])')


def read_json(text: str) -> Any:
    r"""The JSON value in a text, or None: the whole text, else its last fenced JSON, else the last object in its prose.

    An object that names a key twice says two things and is none, as are numbers that JSON has no room for, halves of
    surrogate pairs, and the pieces of an object that breaks off. A bare `null` can't be told from none.

    >>> read_json('Here it is:\n```json\n{"age": 41}\n```'), read_json('So {"age": 41} it is.')
    ({'age': 41}, {'age': 41})
    >>> read_json('{"age": 41, "age": 14}'), read_json('{"age": 1e999}'), read_json('{"name": {"first": "A"}, ')
    (None, None, None)
    """
    if len(text) > LONGEST:
        return None
    try:
        fenced = FENCE.findall(text)[: -_MOST_BROKEN - 1 : -1]
        value = next((found for found in map(_whole, [text, *fenced]) if found is not None), None)
        value = _last_object(text) if value is None else value
    except (ValueError, RecursionError):
        return None
    return value if is_bounded(value) else None


def is_json(text: str) -> bool:
    """Whether the whole of a text is a JSON object or list."""
    return text[:1] in ("{", "[") and text[-1:] in ("}", "]") and isinstance(read_json(text), dict | list)


def read_calls(tool_calls: Any) -> list[dict[str, Any]] | None:
    """A message's `tool_calls` as a list of names and arguments; to call no tool is the empty list. None if unreadable.

    >>> read_calls([{"id": "1", "function": {"name": "look_up", "arguments": '{"city": "Bern"}'}}])
    [{'name': 'look_up', 'arguments': {'city': 'Bern'}}]
    """
    try:
        calls = [
            {"name": call["function"]["name"], "arguments": read_json(call["function"].get("arguments") or "{}")}
            for call in tool_calls or ()
        ]
    except (TypeError, LookupError, AttributeError):
        return None
    readable = all(isinstance(call["name"], str) and isinstance(call["arguments"], dict) for call in calls)
    return calls if readable and is_bounded(calls) else None


def is_bounded(value: Any) -> bool:
    """Whether a value is plain JSON, and neither too deep nor too large to be voted on."""
    level: list[Any] = [value]
    seen = 0
    for _ in range(DEEPEST):
        seen += len(level)
        if seen > MOST_VALUES or not all(map(_is_plain, level)):
            return False
        level = [part for one in level for part in _within(one)]
        if not level:
            return True
    return False


def _within(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(name, str) and _is_text(name) for name in value)
    if isinstance(value, str):
        return _is_text(value)
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return value.bit_length() <= MOST_BITS
    return value is None or isinstance(value, list)


def _is_text(text: str) -> bool:
    """Whether a string can be written down: half of a surrogate pair can't."""
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is named twice")
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_object, strict=False)


def _whole(text: str) -> Any:
    """What a text is that holds JSON and nothing else."""
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError:
        return None


def _last_object(text: str) -> Any:
    """The last object that stands in prose.

    What is read once is not read again: the pieces of a broken object are no objects.
    """
    found, place, end, broken = None, 0, len(text.rstrip()), 0
    while start := _OBJECT.search(text, place):
        try:
            found, place = _DECODER.raw_decode(text, start.start())
        except json.JSONDecodeError as error:
            broken += 1
            place = max(error.pos, start.end())
            if error.msg.startswith("Unterminated string") or place >= end or broken > _MOST_BROKEN:
                return None
    return found
