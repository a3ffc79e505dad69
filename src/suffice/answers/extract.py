"""Extractors: from the text of a response to its final answer as it was written, or None."""

import json
import re
from collections.abc import Callable
from math import isfinite
from typing import Any

from suffice.answers.extractor import Read, TextExtractor, register_extractor
from suffice.answers.stated import boxed, said_formula, said_letter, said_number
from suffice.answers.worker import SEARCHER
from suffice.errors import OptionError


def _quick(name: str) -> Callable[[Read], Read]:
    """Give a function from text to answer, which takes no time to speak of, a name."""

    def add(read: Read) -> Read:
        register_extractor(name)(TextExtractor(read, quick=True))
        return read

    return add


_quick("boxed")(boxed)


@_quick("number")
def number(text: str) -> str | None:
    """The number after `####` or "the answer is", else the last one."""
    found = said_number(text)
    return found[2] if found else None


@_quick("choice")
def choice(text: str) -> str | None:
    """A letter from A to J, as "(C)", "Answer: C", "**C**" or in a box."""
    found = said_letter(text)
    return found[2] if found else None


@_quick("line")
def line(text: str) -> str | None:
    """The last line that is not empty."""
    lines = text.split("\n")
    return next((one.strip() for one in reversed(lines) if one.strip()), None)


_BOXED_CHOICE = re.compile(r"(?:\\(?:text|math)\w*\s*\{\s*)?(?:\(([A-J])\)\s*[^\s}]|([A-J])[.:]\s+\S)")


@_quick("auto")
def auto(text: str) -> str | None:
    """What is boxed; else a number or a letter, whichever the text says is its answer, or gives last."""
    if (inside := boxed(text)) is not None:
        labelled = _BOXED_CHOICE.match(inside)  # "(B) 12" is B
        return (labelled[1] or labelled[2]) if labelled else inside
    found = [one for one in (said_letter(text), said_formula(text), said_number(text)) if one]
    return max(found, key=lambda one: one[:2])[2] if found else None


_MOST_STARTS = 200
"""Places at which JSON is looked for: text made of brackets must not take for ever."""


@register_extractor("json", rest="PATH")
class JsonExtractor(TextExtractor):
    """The value at a path, with dots between its names, in the last JSON that has it."""

    def __init__(self, path: str = "") -> None:
        if not path:
            raise OptionError('the extractor "json" needs a path, as in json:result.answer')
        super().__init__(lambda text: _from_json(text, path.split(".")), quick=True)


def _from_json(text: str, path: list[str]) -> str | None:
    """The value at a path in the last JSON object or list of the text that has it."""
    decoder = json.JSONDecoder(parse_constant=lambda name: None)
    found, end = None, 0
    for start in [place.start() for place in re.finditer(r"[{\[]", text)][-_MOST_STARTS:]:
        if start >= end:
            try:
                value, end = decoder.raw_decode(text, start)
                found = _written(_follow(value, path))
            except (ValueError, RecursionError, LookupError, TypeError):
                continue
    return found


def _follow(value: Any, path: list[str]) -> Any:
    for name in path:
        value = value[int(name)] if isinstance(value, list) else value[name]
    return value


def _written(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float) and not isfinite(value):
        return None
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


@register_extractor("regex", rest="PATTERN")
class RegexExtractor(TextExtractor):
    """The one group of a regular expression's last match."""

    def __init__(self, pattern: str = "") -> None:
        try:
            groups = re.compile(pattern).groups
        except (re.error, RecursionError, OverflowError) as error:
            raise OptionError(f'the extractor "regex:{pattern}" is no regular expression: {error}') from None
        if groups != 1:
            raise OptionError(f'the extractor "regex:{pattern}" must have one group, not {groups}')
        super().__init__(lambda text: SEARCHER.search(pattern, text))
