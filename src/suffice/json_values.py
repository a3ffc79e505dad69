"""JSON in a response, read within bounds: what is too long, too deep or not plain JSON is no answer."""

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from suffice.errors import OptionError

FENCE = re.compile(r"```[^\n`]*\n?(.*?)\s*```", re.DOTALL)
LONGEST = 1_000_000  # characters of a text
DEEPEST = 64  # objects and lists within one another
MOST_VALUES = 10_000  # values within a value
MOST_BITS = 4_000  # of a whole number
_MOST_BROKEN = 200  # fences and objects that are no JSON: each takes its time

_OBJECT = re.compile(r'\{(?=\s*["}])')
_SURROGATE = re.compile("[\ud800-\udfff]")  # half of a pair, which can't be encoded


def read_json(text: str) -> Any:
    """Return the JSON in a text: the whole of it, its last fenced JSON, or else its last object.

    An object that names a key twice says two things and is none, as are numbers that JSON has no room for, halves of
    surrogate pairs, and the pieces of an object that breaks off. A bare `null` can't be told from none.
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
    """Whether the whole of a text is a JSON object or list, or looks like an object."""
    if text[:1] not in ("{", "[") or text[-1:] not in ("}", "]") or len(text) > LONGEST:
        return False
    try:
        return '":' in text or isinstance(_whole(text), dict | list)
    except (ValueError, RecursionError):
        return False


def is_bounded(value: Any) -> bool:
    """Whether a value is plain JSON, and neither too deep nor too large to be voted on."""
    level: list[Any] = [value]
    seen = 0
    for _ in range(DEEPEST):
        seen += len(level)
        if seen > MOST_VALUES or not all(map(_is_plain, level)):
            return False
        nested = [one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list)]
        level = [part for one in nested for part in one]
        if not level:
            return True
    return False


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(name, str) and _is_plain(name) for name in value)
    if isinstance(value, str):
        return value.isascii() or not _SURROGATE.search(value)
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return value.bit_length() <= MOST_BITS
    return value is None or isinstance(value, list)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is named twice")
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_object, strict=False)


def _whole(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError:
        return None


def _last_object(text: str) -> Any:
    """Return the last object in prose, in one pass."""
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


def split_pointer(pointer: str, argument: str) -> tuple[str, ...]:
    """Return the names of a JSON pointer; OptionError if it is none."""
    if pointer and not pointer.startswith("/"):
        raise OptionError(f'needs a JSON pointer such as "/items/*/note", not "{pointer}"', argument)
    return tuple(name.replace("~1", "/").replace("~0", "~") for name in pointer.split("/")[1:])


def check_compared(compare: Mapping[str, str]) -> None:
    """Refuse a way to compare fields that there is not, or a field that is no JSON pointer."""
    for pointer, how in compare.items():
        split_pointer(pointer, "compare")
        if how != "loose":
            raise OptionError(f'must say loose for "{pointer}", not "{how}"', "compare")


def escaped(name: str) -> str:
    """A key as a part of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def leaves(value: Any, pointer: str = "") -> dict[str, Any]:
    """Return scalars, empty objects and empty lists by JSON pointer."""
    if not isinstance(value, dict | list) or not value:
        return {pointer: value}
    found: dict[str, Any] = {}
    for name, part in value.items() if isinstance(value, dict) else enumerate(value):
        found |= leaves(part, f"{pointer}/{escaped(str(name))}")
    return found
