"""Structured answers split into parts, each with the key that it is compared by."""

import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from itertools import groupby
from typing import Any

from suffice.json_values import check_compared, escaped, is_bounded, split_pointer

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
        check_compared(compare or {})
        self._ignored = [split_pointer(pointer, "ignore") for pointer in ignore]
        self._loose = [split_pointer(pointer, "compare") for pointer in compare or {}]

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
