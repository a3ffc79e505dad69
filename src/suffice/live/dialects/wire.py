"""What dialects share: JSON and events as they travel, counts that may be anything, and usage that is summed."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from suffice.response import Response

UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""What reading something that is not as it should be raises."""


def as_json(payload: Any) -> bytes:
    """JSON in UTF-8; with escapes where there is half a character in it, as JSON may have."""
    try:
        return json.dumps(payload, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(payload).encode()


def event(payload: Mapping[str, Any], name: str | None = None) -> bytes:
    """An event of a stream, with a name where the dialect gives them names."""
    return (f"event: {name}\n".encode() if name else b"") + b"data: " + as_json(payload) + b"\n\n"


def events(body: bytes, load: Callable[[bytes], Any] = json.loads) -> list[dict[str, Any]]:
    """The data of a stream's events."""
    lines = [line[5:].strip() for line in body.split(b"\n") if line.startswith(b"data:")]
    return [load(line) for line in lines if line and line != b"[DONE]"]


class PieceMeter:
    """Counts the pieces of text in a stream."""

    def __init__(self, is_piece: Callable[[bytes], bool]) -> None:
        self.generated = 0
        self.streamed = False
        self._is_piece = is_piece
        self._rest = b""

    def restart(self) -> None:
        """Begin again, with another request."""
        self.generated, self._rest = 0, b""

    def feed(self, data: bytes) -> None:
        """Take in what has arrived."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                self.streamed = True
                self.generated += self._is_piece(line)


class TextHearing:
    """Joins the pieces of text in a stream."""

    def __init__(self, heard: Callable[[dict[str, Any]], str]) -> None:
        self.text = ""
        self._heard = heard
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Take in what has arrived."""
        whole, newline, self._rest = (self._rest + data).rpartition(b"\n")
        with suppress(*UNREADABLE):
            for one in events(whole + newline):
                self.text += self._heard(one)


def schema_of(form: Any) -> dict[str, Any] | None:
    """The schema of a format that asks for JSON, empty where any object will do; None where it asks for no JSON."""
    if not isinstance(form, dict) or form.get("type") not in ("json_object", "json_schema"):
        return None
    schema = form.get("schema")
    return schema if isinstance(schema, dict) else {}


def flat_form(response_format: Mapping[str, Any]) -> dict[str, Any]:
    """A chat completion's format with its name and schema beside its type, where other dialects have them."""
    named = response_format.get("json_schema")
    return {"type": response_format.get("type"), **(named if isinstance(named, Mapping) else {})}


def in_place(parts: Sequence[Any], old: Sequence[Any], new: Sequence[Any]) -> list[Any]:
    """The parts with new ones where the first of the old ones stood, and without these; at the end if there are none.

    >>> in_place(["a", "b", "c", "b"], ["b", "b"], ["x"])
    ['a', 'x', 'c']
    """
    first = parts.index(old[0]) if old else len(parts)
    kept = [[one for one in some if one not in old] for some in (parts[:first], parts[first:])]
    return [*kept[0], *new, *kept[1]]


def whole_characters(text: Any) -> str | None:
    """The text with halves of characters replaced, which no file could hold."""
    if not isinstance(text, str):
        return None
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def count(value: Any) -> int | None:
    """A count, if it is one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def usage_of(reply: Mapping[str, Any]) -> dict[str, Any]:
    """The usage that a reply tells, if any."""
    told = reply.get("usage")
    return told if isinstance(told, dict) else {}


def usage_of_all(responses: Sequence[Response]) -> dict[str, Any]:
    """The usage of all requests, summed field by field."""
    total: dict[str, Any] = {}
    for reply in {id(response.reply): response.reply for response in responses}.values():
        _add_usage(total, usage_of(reply))
    return total


def _add_usage(total: dict[str, Any], usage: Mapping[str, Any]) -> None:
    """Add numbers to numbers of the same name, at any depth."""
    for name, value in usage.items():
        before = total.get(name)
        if isinstance(value, dict):
            total[name] = before if isinstance(before, dict) else {}
            _add_usage(total[name], value)
        elif _is_number(value) and (before is None or _is_number(before)):
            total[name] = (before or 0) + value
        elif before is None:
            total[name] = value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
