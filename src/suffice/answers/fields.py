"""JSON in a response: read within bounds, and split into parts that can be compared.

What is too long, too deep or not plain JSON is no answer.
"""

import json
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from itertools import groupby
from typing import Any

from suffice.answers.prose import FENCE
from suffice.errors import OptionError

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
    """Whether the whole of a text is a JSON object or list."""
    return text[:1] in ("{", "[") and text[-1:] in ("}", "]") and isinstance(read_json(text), dict | list)


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


OBJECT, LIST = "{}", "[]"  # keys of those that have parts
MOST_MARKS = 30  # in a row: normalising takes quadratic time

_MOST_WORDS = 12


@dataclass(eq=False)
class Part:
    """A value within a structured answer, and the key that it is compared by."""

    value: Any
    key: str
    is_ignored: bool = False
    fields: "dict[str, Part]" = field(default_factory=dict)
    elements: "list[Part]" = field(default_factory=list)

    @property
    def is_leaf(self) -> bool:
        """Whether it is a scalar or empty."""
        return not self.fields and not self.elements

    @cached_property
    def form(self) -> str:
        """The part in one spelling, without what is ignored."""
        if self.key == OBJECT:
            named = sorted((name, part) for name, part in self.fields.items() if not part.is_ignored)
            return "{" + ",".join(f"{_quoted(name)}:{part.form}" for name, part in named) + "}"
        if self.key == LIST:
            return "[" + ",".join(part.form for part in self.elements) + "]"
        return self.key

    @cached_property
    def content(self) -> "tuple[tuple[str, str, tuple[str, ...]], ...]":
        """For each leaf its path without places in lists, its key, and the words of a text."""
        return tuple(sorted(self._content("")))

    def __lt__(self, other: "Part") -> bool:
        return (self.content, self.form) < (other.content, other.form)

    def _content(self, path: str) -> "Iterator[tuple[str, str, tuple[str, ...]]]":
        if self.is_ignored:
            return
        if self.is_leaf:
            words = self.value.casefold().split()[:_MOST_WORDS] if isinstance(self.value, str) else []
            yield path, self.key, tuple(sorted(set(words))) if len(words) > 1 else ()
        for name, part in self.fields.items():
            yield from part._content(f"{path}/{escaped(name)}")
        for part in self.elements:
            yield from part._content(f"{path}/*")


MISSING = Part(None, "missing")  # in place of a key or an element that is not there


class FieldComparison:
    """What is left out of comparisons, and where case and punctuation don't count.

    Both by JSON pointer, and for all that is below it; `*` stands for any key and for any element of a list.
    """

    def __init__(self, ignore: Sequence[str] = (), compare: Mapping[str, str] | None = None) -> None:
        self._ignored = [_split(pointer, "ignore") for pointer in ignore]
        self._loose = [_split(pointer, "compare") for pointer in compare or {}]
        for pointer, how in (compare or {}).items():
            if how != "loose":
                raise OptionError(f'must say loose for "{pointer}", not "{how}"', "compare")

    def part(self, value: Any) -> Part | None:
        """A JSON value as a part; None where it is none, or out of bounds."""
        return None if value is None or not is_bounded(value) else _part(value, self._ignored, self._loose)


_Patterns = list[tuple[str, ...]]


def _part(value: Any, ignored: _Patterns, loose: _Patterns) -> Part:
    is_ignored = () in ignored
    if isinstance(value, dict):
        fields = {name: _part(inner, _below(ignored, name), _below(loose, name)) for name, inner in value.items()}
        return Part(value, OBJECT, is_ignored, fields=fields)
    if isinstance(value, list):
        ignored, loose = _below(ignored), _below(loose)
        elements = [_part(inner, ignored, loose) for inner in value]
        return Part(value, LIST, is_ignored or () in ignored, elements=elements)
    return Part(value, scalar_key(value, () in loose), is_ignored)


def _below(patterns: _Patterns, name: str | None = None) -> _Patterns:
    """Return the rest of the patterns within a key, or within a list's elements."""
    left = [pattern for pattern in patterns if not pattern]
    for first, *rest in filter(None, patterns):
        if first in (name, "*") or (name is None and first.isdecimal()):
            left.append(tuple(rest))
    return left


def _split(pointer: str, argument: str) -> tuple[str, ...]:
    if pointer and not pointer.startswith("/"):
        raise OptionError(f'needs a JSON pointer such as "/items/*/note", not "{pointer}"', argument)
    return tuple(name.replace("~1", "/").replace("~0", "~") for name in pointer.split("/")[1:])


def scalar_key(value: Any, loose: bool = False) -> str:
    """Return a number's value, or a string with its white space and Unicode folded."""
    if isinstance(value, str):
        return _quoted(_folded(value, loose))
    if isinstance(value, float):
        return str(int(Decimal(repr(value)))) if value.is_integer() else repr(value)  # int(1e23) is another number
    return str(value) if type(value) is int else json.dumps(value)


def _folded(text: str, loose: bool) -> str:
    runs = groupby(text, lambda letter: unicodedata.combining(letter) > 0)
    if not text.isascii() and not any(is_mark and len([*run]) > MOST_MARKS for is_mark, run in runs):
        text = unicodedata.normalize("NFKC" if loose else "NFC", text)
    if loose:
        text = "".join(letter for letter in text.casefold() if letter.isalnum()) or text
    return " ".join(text.split())


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


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
