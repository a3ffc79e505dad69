"""One structured answer as parts that can be compared: what each is compared by, and where it stands."""

import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import groupby
from typing import Any

from suffice.answers.json_text import is_bounded
from suffice.errors import OptionError

OBJECT, LIST = "{}", "[]"
"""The keys of parts that have parts of their own."""

MOST_MARKS = 30
"""Combining marks in a row up to which a string's Unicode is normalised: that takes time quadratic in their number."""

_MOST_WORDS = 12


class Part:
    """A value within a structured answer, as it came, and the key that it is compared by."""

    def __init__(self, value: Any, key: str, parts: "dict[str, Part] | list[Part] | None" = None) -> None:
        self.value = value
        self.key = key
        self.parts = parts
        self.is_ignored = False

    @property
    def fields(self) -> "dict[str, Part]":
        """The parts of an object by name; none for anything else."""
        return self.parts if isinstance(self.parts, dict) else {}

    @property
    def elements(self) -> "list[Part]":
        """The parts of a list; none for anything else."""
        return self.parts if isinstance(self.parts, list) else []

    @cached_property
    def form(self) -> str:
        """The whole part in one spelling, without what is ignored: equal forms are equal values."""
        if isinstance(self.parts, dict):
            named = sorted((name, part) for name, part in self.parts.items() if not part.is_ignored)
            return "{" + ",".join(f"{_quoted(name)}:{part.form}" for name, part in named) + "}"
        if isinstance(self.parts, list):
            return "[" + ",".join(part.form for part in self.parts) + "]"
        return self.key

    @cached_property
    def content(self) -> "tuple[tuple[str, str, tuple[str, ...]], ...]":
        """What is in it, wherever in lists: for each leaf its path, its key, and the words of a longer text."""
        return tuple(sorted(self._content("")))

    def __lt__(self, other: "Part") -> bool:
        return (self.content, self.form) < (other.content, other.form)

    def _content(self, path: str) -> "Iterator[tuple[str, str, tuple[str, ...]]]":
        if self.is_ignored:
            return
        if not self.parts:
            words = self.value.casefold().split()[:_MOST_WORDS] if isinstance(self.value, str) else []
            yield path, self.key, tuple(sorted(set(words))) if len(words) > 1 else ()
        for name, part in self.fields.items():
            yield from part._content(f"{path}/{escaped(name)}")
        for part in self.elements:
            yield from part._content(f"{path}/*")


MISSING = Part(None, "missing")
"""What stands where a key or an element of a list is not there."""


@dataclass(frozen=True)
class FieldComparison:
    """How structured answers are compared: what is left out, and where case and punctuation don't count.

    Both by JSON pointer, and for all that is below it; `*` stands for any key and for any element of a list.

    >>> comparison = FieldComparison(ignore=["/note"], compare={"/city": "loose"})
    >>> one, other = {"city": "St. Gallen", "n": 1}, {"n": 1.0, "city": "st gallen", "note": "as on page 2"}
    >>> comparison.part(one).form == comparison.part(other).form
    True
    """

    ignore: Sequence[str] = ()
    compare: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        for pointer in self.ignore:
            _split(pointer, "ignore")
        for pointer, how in (self.compare or {}).items():
            _split(pointer, "compare")
            if how != "loose":
                raise OptionError(f'must say loose for "{pointer}", not "{how}"', "compare")

    def part(self, value: Any) -> Part | None:
        """A JSON value as a part; None where it is none, or out of bounds."""
        if value is None or not is_bounded(value):
            return None
        ignored = [_split(pointer, "ignore") for pointer in self.ignore]
        loose = [_split(pointer, "compare") for pointer in self.compare or {}]
        return _part(value, ignored, loose)


_Patterns = list[tuple[str, ...]]


def _part(value: Any, ignored: _Patterns, loose: _Patterns) -> Part:
    part: Part
    if isinstance(value, dict):
        part = Part(value, OBJECT, {
            name: _part(inner, _below(ignored, name), _below(loose, name)) for name, inner in value.items()
        })  # fmt: skip
    elif isinstance(value, list):
        ignored_below, loose_below = _below(ignored), _below(loose)
        part = Part(value, LIST, [_part(inner, ignored_below, loose_below) for inner in value])
    else:
        part = Part(value, scalar_key(value, () in loose))
    part.is_ignored = () in ignored or (isinstance(value, list) and () in _below(ignored))
    return part


def _below(patterns: _Patterns, name: str | None = None) -> _Patterns:
    """What is left of the patterns within a key, or within a list's elements where there is no name."""
    if not patterns:
        return patterns
    return [
        pattern[1:]
        for pattern in patterns
        if pattern and (pattern[0] in (name, "*") or (name is None and pattern[0].isdecimal()))
    ] + [() for pattern in patterns if not pattern]


def _split(pointer: str, argument: str) -> tuple[str, ...]:
    if pointer and not pointer.startswith("/"):
        raise OptionError(f'needs a JSON pointer such as "/items/*/note", not "{pointer}"', argument)
    return tuple(name.replace("~1", "/").replace("~0", "~") for name in pointer.split("/")[1:])


def scalar_key(value: Any, loose: bool = False) -> str:
    """What a scalar is compared by: numbers by value, strings after folding white space and Unicode.

    >>> [scalar_key(value) for value in (1, 1.0, 1e23, 0.5, True, None, " a\\u0308 b ")]
    ['1', '1', '100000000000000000000000', '0.5', 'true', 'null', '"ä b"']
    """
    if isinstance(value, str):
        return _quoted(_folded(value, loose))
    if isinstance(value, float):
        return str(int(Decimal(repr(value)))) if value.is_integer() else repr(value)  # int(1e23) is another number
    return str(value) if type(value) is int else json.dumps(value)


def _folded(text: str, loose: bool) -> str:
    if not text.isascii() and _most_marks(text) <= MOST_MARKS:
        text = unicodedata.normalize("NFKC" if loose else "NFC", text)
    if loose:
        text = "".join(letter for letter in text.casefold() if letter.isalnum()) or text
    return " ".join(text.split())


def _most_marks(text: str) -> int:
    """The length of the longest run of combining marks."""
    runs = groupby(text, lambda letter: unicodedata.combining(letter) > 0)
    return max((sum(1 for _ in run) for is_mark, run in runs if is_mark), default=0)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def escaped(name: str) -> str:
    """A key as a part of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def leaves(value: Any, pointer: str = "") -> dict[str, Any]:
    """The scalars and the empty objects and lists within a value, by JSON pointer.

    >>> leaves({"name": "A/S", "items": [{"n": 1}, {}], "a/b": None})
    {'/name': 'A/S', '/items/0/n': 1, '/items/1': {}, '/a~1b': None}
    """
    if not isinstance(value, dict | list) or not value:
        return {pointer: value}
    named = value.items() if isinstance(value, dict) else enumerate(value)
    return {
        path: leaf
        for name, part in named
        for path, leaf in leaves(part, f"{pointer}/{escaped(str(name))}").items()
    }  # fmt: skip
