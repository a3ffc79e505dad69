r"""Extractors: from the text of a response to its final answer as it was written, or None.

>>> number("It was 12, no: the answer is 1,234."), choice("Answer: (C)"), line("First.\nLast.")
('1,234', 'C', 'Last.')
"""

import re

from suffice.answers.extractor import Extractor, Read, TextExtractor, register_extractor
from suffice.answers.forms import chosen_letter
from suffice.answers.prose import NUMBER, boxed, plain_number, unfenced, unmarked
from suffice.answers.structure import Structure, spelled
from suffice.errors import OptionError
from suffice.json_values import read_json
from suffice.killable import SEARCHER
from suffice.response import Response

_TAIL = 20_000  # characters that are searched, at the end
_MOST_STATEMENTS = 50
_REFUSAL = re.compile(
    r"\W*(?:I\b|Sorry|Unfortunately|Ich\b|Leider|Je\b|Désolé|Lo siento|No (?:puedo|sé)\b|Mi dispiace|Desculp|Извините|"
    r"К сожалению|抱歉|对不起|我无法|我不|申し訳|すみません|죄송|عذرا|माफ़)",
    re.IGNORECASE,
)

_SAYS = re.compile(r"(?:answer|choice|option)\b[^.\n:=]{0,60}?(?:\bis\b|\bwas\b|\bbe\b|:|=)|####", re.IGNORECASE)
_MATHS = re.compile(r"[\s*:]*\$\$?([^$\n]{1,200})\$|[\s*:]*\\\(([^\n]{1,200}?)\\\)")
_ASIDE = re.compile(r", |; | \(|\. |\.$|\bbecause\b|\bsince\b|\bwhere\b|\bas\b", re.MULTILINE)
_LETTER = re.compile(
    r"[\s\"“'(*]*(?:(?i:therefore|option|choice) )?([A-J]|[a-j](?=\W*$))(?![\w'’]| (?!is\b|as\b|because|since)[a-z])"
)
_LETTERS = dict.fromkeys("ABCDEFGHIJ", "")


def _said(text: str, *readers: Read) -> str | None:
    """Read what follows the last "answer is", with the first reader that finds anything."""
    text = text[-_TAIL:]
    for say in [*_SAYS.finditer(text)][: -_MOST_STATEMENTS - 1 : -1]:
        rest = text[say.end() :][:201].lstrip()[:200].partition("\n")[0]  # it may begin on the next line
        for read in readers:
            if (found := read(rest)) is not None:
                return found
    return None


def _letter_at(rest: str) -> str | None:
    letter = _LETTER.match(unmarked(rest))
    return letter[1].upper() if letter else None


def _formula_at(rest: str) -> str | None:
    maths = _MATHS.match(rest)
    return (maths[1] or maths[2]).rpartition("=")[2].strip() or None if maths else None


def _number_at(rest: str) -> str | None:
    aside = _ASIDE.search(rest)
    said = rest[: aside.start()] if aside and NUMBER.search(rest[: aside.start()]) else rest
    number = NUMBER.search(said, said.rfind("=") + 1) or NUMBER.search(said)
    fits = number and ("=" in said or len(said[: number.start()].split()) <= 4)
    return plain_number(number[0]) if number and fits else None


def number(text: str) -> str | None:
    """The number after `####` or "the answer is", else the last one."""
    found = _said(text, _number_at)
    last = None if found else [*NUMBER.finditer(text[-_TAIL:])][-1:]
    return plain_number(last[0][0]) if last else found


def choice(text: str) -> str | None:
    """A letter from A to J, as "(C)", "Answer: C", "**C**" or in a box."""
    inside = boxed(text)
    said = None if inside else _said(text, _letter_at)
    return said or chosen_letter(unmarked(inside) if inside else text, _LETTERS)


def stated(text: str) -> str | None:
    """Return the answer that a text states, else any letter or number in it."""
    return _said(text, _letter_at, _formula_at, _number_at) or choice(text) or number(text)


def refuses(text: str) -> bool:
    """Whether a text begins as replies without an answer do."""
    return _REFUSAL.match(text) is not None


def line(text: str) -> str | None:
    """The last line that is not empty."""
    return next((one.strip() for one in reversed(text.split("\n")) if one.strip()), None)


register_extractor("boxed")(TextExtractor(boxed, quick=True, kind="boxed"))
register_extractor("number")(TextExtractor(number, quick=True, kind="conclusion"))
register_extractor("choice")(TextExtractor(choice, quick=True, kind="option"))
register_extractor("line")(TextExtractor(line, quick=True, kind="short"))


@register_extractor("json", rest="PATH")
def json_extractor(path: str = "") -> Extractor:
    """The value at a path, with dots between its names, in the response's JSON; without one, all its fields."""

    def read(text: str) -> str | None:
        value = read_json(text)
        try:
            for name in path.split("."):
                value = value[int(name)] if isinstance(value, list) else value[name]
        except (ValueError, LookupError, TypeError):
            return None
        return value if value is None or isinstance(value, str) else spelled(value)

    return TextExtractor(read, quick=True, kind="slot") if path else Structure()


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
        super().__init__(lambda text: SEARCHER.run("search", pattern, text), kind="slot")


@register_extractor("ask")
class AskExtractor(Extractor):
    """The model reads: after each response it is asked for the final answer alone, and what it says then is the key.

    >>> AskExtractor().extract(Response("Six sevens make 42, as is well known.", final="42."))
    '42.'
    """

    quick = True
    kind = "asked"
    follow_up = "Now give your final answer alone, as short as it can be said, with no explanation."

    def extract(self, response: Response) -> str | None:
        return unfenced(response.final) or None if response.final else None
