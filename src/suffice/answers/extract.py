r"""Extractors: from the text of a response to its final answer as it was written, or None.

>>> number("It was 12, no: the answer is 1,234."), choice("Answer: (C)"), line("First.\nLast.")
('1,234', 'C', 'Last.')
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any

from suffice.answers.evidence import evidence, is_structure
from suffice.answers.extractor import Extractor, Read, TextExtractor, register_extractor
from suffice.answers.requests import UNASKED, Question, read_request
from suffice.answers.stated import boxed, said_letter, said_number
from suffice.answers.structure import Structure
from suffice.answers.worker import SEARCHER
from suffice.errors import OptionError
from suffice.response import Response


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


@register_extractor("auto")
class AutoExtractor(Extractor):
    """What a person would call the response's answer, read in the light of the request where that is known.

    Weak evidence, the last number somewhere in prose, counts where somebody asked for a vote and the request does not
    ask for a text.
    """

    quick = True

    def __init__(self, question: Question = UNASKED, *, weak: bool = True) -> None:
        self._question = question
        self._weak = weak and question.has_one_answer is not False

    def for_request(self, messages: Sequence[Mapping[str, Any]], *, asked: bool = True) -> "AutoExtractor":
        """The one that knows what was asked."""
        return AutoExtractor(read_request(messages), weak=asked)

    def for_scout(self, scout: Response) -> Extractor | None:
        """Itself where the scout has an answer; one that reads fields where it is an object."""
        if self.extract(scout) is not None:
            return self
        structured = Structure()
        return structured if isinstance(structured.value(scout), dict) and is_structure(scout.said or "") else None

    def extract(self, response: Response) -> str | None:
        """The answer for which there is clear evidence, or else the weak one."""
        if not response.is_complete or not response.said:
            return None
        found = evidence(response.said, self._question)
        return found.answer if found.clear or self._weak else None


_MOST_STARTS = 200
"""Places at which JSON is looked for: text made of brackets must not take for ever."""


@register_extractor("json", rest="PATH")
def json_extractor(path: str = "") -> Extractor:
    """The value at a path, with dots between its names, in the last JSON that has it; without one, all its fields."""
    return TextExtractor(lambda text: _from_json(text, path.split(".")), quick=True) if path else Structure()


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
