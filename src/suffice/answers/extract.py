"""Extractors: from the text of a response to its final answer as it was written, or None."""

import json
import re
from collections.abc import Callable
from typing import Any

from suffice.answers.tools import tool_extractor
from suffice.answers.worker import WORKER
from suffice.errors import OptionError

Extractor = Callable[[str], str | None]

_registered: dict[str, Extractor] = {}


def register_extractor(name: str) -> Callable[[Extractor], Extractor]:
    """Make a function from text to answer usable by name, as `--answer NAME`."""
    if not re.fullmatch(r"[a-z][a-z0-9_-]*", name) or name in ("json", "regex", "tool"):
        raise OptionError(f'"{name}" can\'t name an extractor: use lower-case letters, digits, "-" and "_"')

    def add(extractor: Extractor) -> Extractor:
        if _registered.setdefault(name, extractor) is not extractor:
            raise OptionError(f'there is already an extractor "{name}": choose another name')
        return extractor

    return add


def extractor_names() -> list[str]:
    """The names that are registered, and the forms that take a parameter."""
    return [*sorted(_registered), "json:PATH", "regex:PATTERN", "tool", "tool:name"]


def get_extractor(answer: str | Extractor) -> Extractor:
    r"""The extractor that a string describes; any other callable is returned as it is.

    >>> get_extractor("auto")(r"So the total is \boxed{\frac{1}{2}}, as 3 of 6 are red.")
    '\\frac{1}{2}'
    """
    if callable(answer):
        return answer
    name, _, parameter = answer.partition(":")
    if name == "tool":
        return tool_extractor(answer)
    if name == "json" and parameter:
        return lambda text: _from_json(text, parameter.split("."))
    if name == "regex" and parameter:
        return _by_regex(parameter)
    if answer not in _registered:
        raise OptionError(f'unknown extractor "{answer}": there are {", ".join(extractor_names())}')
    return _registered[answer]


@register_extractor("boxed")
def boxed(text: str) -> str | None:
    r"""What is in the last balanced `\boxed{…}` or `\fbox{…}`."""
    found = None
    open_groups: list[int | None] = []
    for token in re.finditer(r"\\(?:boxed|fbox)\s*\{|\\.|[{}]", text, re.DOTALL):
        if token[0] == "{":
            open_groups.append(None)
        elif token[0].endswith("{") and len(token[0]) > 2:
            open_groups.append(token.end())
        elif token[0] == "}" and open_groups:
            start = open_groups.pop()
            if start is not None:
                found = text[start : token.start()].strip()
    return found or None


_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)"
_NUMBER = re.compile(
    rf"(?:(?<![\w.)\]}}])[-−+]\s?)?\\?\$?(?:\\[dt]?frac\{{-?\d+\}}\{{\d+\}}|(?<![\w.]){_DIGITS}"
    rf"(?:[eE][-+]?\d+\b)?(?:\s?/\s?\d+(?!\.?\d))?)(?:\s?\\?%)?"
)
_SAYS = re.compile(r"answer\b[^.\n:=]{0,60}?(?:\bis\b|\bwas\b|\bwould be\b|:|=)\s*|####\s*", re.IGNORECASE)


def _number(text: str) -> tuple[bool, int, str] | None:
    """The number that the text gives as its answer: whether it says so, where, and what."""
    stated = None
    for says in _SAYS.finditer(text):
        line_end = text.find("\n", says.end())
        rest = text[says.end() : len(text) if line_end < 0 else line_end][:200]
        number = _NUMBER.search(rest)
        if number and len(rest[: number.start()].split()) <= 4:
            stated = (True, says.start(), _plain(number[0]))
    if stated:
        return stated
    last = None
    for last in _NUMBER.finditer(text):  # noqa: B007
        pass
    return (False, last.start(), _plain(last[0])) if last else None


def _plain(number: str) -> str:
    return number.replace("−", "-").replace("\\$", "").replace("$", "").strip()


@register_extractor("number")
def number(text: str) -> str | None:
    """The number after `####` or "the answer is", else the last one."""
    found = _number(text)
    return found[2] if found else None


_LETTER = r"(?:\\boxed\s*\{\s*)?(?:\\text\s*\{\s*)?[*_`]*\(?[*_`]*([A-J])[*_`]*(?:\)|(?![\w'’]))"
_STATED_CHOICE = re.compile(
    r"(?i:answer|choice|option|choose|select|pick)(?i:\s+is|\s+would\s+be)?\s*:?\s*[*_`]*\s*(?i:option\s+|choice\s+)?\$?"
    + _LETTER
)
_MARKED_CHOICE = re.compile(
    r"\((?P<a>[A-J])\)|\*\*\(?(?P<b>[A-J])\)?[.:]?\*\*|\\boxed\s*\{\s*(?:\\text\s*\{\s*)?\(?(?P<c>[A-J])\)?\s*\}"
    r"|(?:\A|\n)\s*(?P<d>[A-J])[.)]?\s*\Z"
)


def _choice(text: str) -> tuple[bool, int, str] | None:
    """The letter that the text gives as its answer: whether it says so, where, and which."""
    found = None
    for match in _MARKED_CHOICE.finditer(text):
        found = (match["c"] is not None, match.start(), str(match[match.lastgroup or 0]))
    for match in _STATED_CHOICE.finditer(text):
        if found is None or not found[0] or match.start() > found[1]:
            found = (True, match.start(), match[1])
    return found


@register_extractor("choice")
def choice(text: str) -> str | None:
    """A letter from A to J, as "(C)", "Answer: C", "**C**" or in a box."""
    found = _choice(text)
    return found[2] if found else None


@register_extractor("line")
def line(text: str) -> str | None:
    """The last line that is not empty."""
    lines = text.split("\n")
    return next((one.strip() for one in reversed(lines) if one.strip()), None)


@register_extractor("auto")
def auto(text: str) -> str | None:
    """What is boxed; else a number or a letter, whichever the text says is its answer, or gives last."""
    if (inside := boxed(text)) is not None:
        return inside
    found = [one for one in (_choice(text), _number(text)) if one]
    return max(found, key=lambda one: one[:2])[2] if found else None


_MOST_STARTS = 200
"""Places at which JSON is looked for: text made of brackets must not take for ever."""


def _from_json(text: str, path: list[str]) -> str | None:
    """The value at a path in the last JSON object or list of the text that has it."""
    decoder = json.JSONDecoder()
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
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _by_regex(pattern: str) -> Extractor:
    try:
        groups = re.compile(pattern).groups
    except (re.error, RecursionError, OverflowError) as error:
        raise OptionError(f'the extractor "regex:{pattern}" is no regular expression: {error}') from None
    if groups != 1:
        raise OptionError(f'the extractor "regex:{pattern}" must have one group, not {groups}')
    return lambda text: WORKER.search(pattern, text)
