"""Extractors: from the text of a response to its final answer as it was written, or None."""

import json
import re
from collections.abc import Callable
from math import isfinite
from typing import Any

from suffice.answers.extractor import Read, TextExtractor, register_extractor
from suffice.answers.worker import SEARCHER
from suffice.errors import OptionError


def _quick(name: str) -> Callable[[Read], Read]:
    """Give a function from text to answer, which takes no time to speak of, a name."""

    def add(read: Read) -> Read:
        register_extractor(name)(TextExtractor(read, quick=True))
        return read

    return add


@_quick("boxed")
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
                found = (start, token.start())
    return (text[slice(*found)].strip() or None) if found else None


_TAIL = 20_000
"""Characters at the end of a text in which numbers and letters are looked for."""

_MOST_STATEMENTS = 50

_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)"
_NUMBER = re.compile(
    rf"(?:(?<![\w.)\]}}])[-−+] ?)?\\?\$?(?:\d+ ?)?(?:\\[dt]?frac\{{-?\d+\}}\{{\d+\}}|(?<![\w.]){_DIGITS}"
    rf"(?:[eE][-+]?\d+\b| ?(?:×|x|\*|\\times|\\cdot) ?10\^(?:\{{-?\d+\}}|-?\d+)| \d+/\d+(?!\.?\d)| ?/ ?\d+(?!\.?\d))?)"
    rf"(?: ?\\?%| (?:thousand|million|billion|percent)\b)?"
)
_SAYS = re.compile(r"answer\b[^.\n:=]{0,60}?(?:\bis\b|\bwas\b|\b(?:would|must|should) be\b|:|=)|####", re.IGNORECASE)
_MATHS = re.compile(r"[\s*:]*\$\$?([^$\n]{1,200})\$|[\s*:]*\\\(([^\n]{1,200}?)\\\)")
_ASIDE = re.compile(r", |; | \(|\. |\.$|\bbecause\b|\bsince\b|\bwhere\b|\bas\b", re.MULTILINE)


def _statements(text: str) -> list[tuple[int, str]]:
    """Where the text says what its answer is, last first, and the rest of the line there."""
    says = list(_SAYS.finditer(text))[-_MOST_STATEMENTS:]
    ends = [text.find("\n", say.end() + 1) for say in says]  # what is said may begin on the next line
    rests = [text[say.end() : (len(text) if end < 0 else end)][:200] for say, end in zip(says, ends, strict=True)]
    return [(say.start(), rest) for say, rest in zip(says, rests, strict=True)][::-1]


def _number(text: str) -> tuple[bool, int, str] | None:
    """The number that the text gives as its answer: whether it says so, where, and what."""
    text = text[-_TAIL:]
    for start, rest in _statements(text):
        aside = _ASIDE.search(rest)
        said = rest[: aside.start()] if aside and _NUMBER.search(rest[: aside.start()]) else rest
        number = _NUMBER.search(said, said.rfind("=") + 1) or _NUMBER.search(said)
        if number and ("=" in said or len(said[: number.start()].split()) <= 4):
            return True, start, _plain(number[0])
    last = None
    for last in _NUMBER.finditer(text):  # noqa: B007
        pass
    return (False, last.start(), _plain(last[0])) if last else None


def _formula(text: str) -> tuple[bool, int, str] | None:
    """The formula that the text says is its answer, where it stands between dollar signs."""
    for start, rest in _statements(text[-_TAIL:]):
        maths = _MATHS.match(rest)
        if maths:
            written = (maths[1] or maths[2]).rpartition("=")[2].strip()
            return (True, start, written) if written else None
    return None


def _plain(number: str) -> str:
    return number.replace("−", "-").replace("\\$", "").replace("$", "").strip()


@_quick("number")
def number(text: str) -> str | None:
    """The number after `####` or "the answer is", else the last one."""
    found = _number(text)
    return found[2] if found else None


_LETTER = r"\(?([A-J])\b\)?(?!['’])"
_CHOICES = [
    # What says that it is the answer, what comes to a conclusion, and what only names a letter; each with the letter.
    re.compile(
        r"(?i:answer|choice|option)(?i: to [^.:]{1,60}?)?(?i: is| would be| must be| should be| was|:| =)+ ?"
        r"(?i:therefore |thus |indeed |clearly |option |choice )?[\"“']?" + _LETTER
        + r"|" + _LETTER + r"[\"”']?(?: is| was| must be)(?: therefore)? (?:the )?(?:correct|right|answer|best)"
        r"|(?i:answer ?: ?)([a-j])(?=[.\s]*$)"
    ),
    re.compile(
        r"(?i:choose|select|pick|go with|it is|it's|it’s|must be|should be|so|therefore,?|thus,?|hence,?) "
        r"(?i:option |choice |answer )?" + _LETTER + r"|(?i:option|choice) " + _LETTER
    ),
    re.compile(r"\(([A-J])\)|(?:^|\n) ?([A-J])[.):] ?\S[^\n]*$|(?:^|\n) ?([A-J])[.)]? ?$"),
]  # fmt: skip
_DENIED = re.compile(
    r"[\s)]*(?:is|was|are|would be|can be|seems)? ?"
    r"(?:not|n't|incorrect|wrong|impossible|false|ruled|eliminated|would|can't|cannot)\b"
)
_BOXED_LETTER = re.compile(r"(?:\\(?:text|math)\w*\s*\{\s*)*\(?([A-J])\)?(?:$|[}.:)\s])")
_BOLD = re.compile(r"\*\*\(?([A-J])\)?(?:[.:)] ?[^*\n]{0,80})?\*\*")


def _choice(text: str) -> tuple[bool, int, str] | None:
    """The letter that the text gives as its answer: whether it says so, where, and which."""
    text = text[-_TAIL:]
    inside = boxed(text)
    letter = _BOXED_LETTER.match(inside) if inside else None
    if letter:
        return True, len(text), letter[1]
    bold = list(_BOLD.finditer(text))
    plain = re.sub(r"\\(?:text|math)\w*\{([^{}]*)\}", r"\1", text)
    plain = re.sub(r"[ \t]+", " ", re.sub(r"[*_`$]+", "", plain)).strip()
    plain = re.sub(r"\s*\n\s*", "\n", plain)
    for rank, pattern in enumerate(_CHOICES):
        if rank == 2 and bold:
            return False, bold[-1].start(), bold[-1][1]
        for match in reversed(list(pattern.finditer(plain))):
            group = match.lastindex or 0
            if not _DENIED.match(plain, match.end()) and not _is_a_word(plain, match, group):
                return rank == 0, match.start(), match[group].upper()
    return None


def _is_a_word(text: str, match: re.Match[str], group: int) -> bool:
    """Whether the letter is an article or a pronoun: "Answer: A train …", "I think"."""
    bare = text[match.start(group) - 1 : match.start(group)] != "(" and match[group] in "AI"
    return bare and re.match(r" (?!is\b|because|since|as\b)[a-z0-9]", text[match.end(group) :][:12]) is not None


@_quick("choice")
def choice(text: str) -> str | None:
    """A letter from A to J, as "(C)", "Answer: C", "**C**" or in a box."""
    found = _choice(text)
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
    found = [one for one in (_choice(text), _formula(text), _number(text)) if one]
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
