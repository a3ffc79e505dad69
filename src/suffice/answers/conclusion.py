"""What a response comes to: the value in its last sentence, in any script, where the request leads to such a value."""

import re

from suffice.answers.prose import in_bold, sentences, unmarked
from suffice.answers.requests import Request
from suffice.answers.short import echoes, without_echo
from suffice.answers.values import NUMBER, clocks, dates, in_digits, numbers, plain_number, without_asides
from suffice.answers.words import folded, within

_EQUALS = re.compile(r"[=＝≈→⇒]")
_LABELLED = re.compile(r"\b(?:step|section|part|page|no\.|#)\s*\d[\d.]*:?|^\s*\d{1,2}[.)]\s", re.IGNORECASE)
RANGE = re.compile(r"\d[–—-]\d+(?![\d,.]*\s?=)")
_FEW = 3
"""Words of a name."""
_LAST = 3
"""Sentences from the end in which a value is looked for: a courtesy may follow it."""


def value_in(sentence: str, request: Request) -> str | None:
    """The number or the time of day that a sentence comes to: after its last sign of equality, or the last new one."""
    new = [] if request.value else [one for one in dates(unmarked(sentence)) if not within(folded(one), request.text)]
    if new:
        return new[-1]
    bare = without_asides(_LABELLED.sub("", in_digits(unmarked(sentence), request.continental)))
    if request.times and (times := [one for one in clocks(bare) if one not in request.times or not request.value]):
        return times[-1]
    equal = _EQUALS.split(bare)
    if len(equal) > 1 and (number := NUMBER.search(equal[-1])) and number.start() <= 4:
        return plain_number(number[0])
    found = numbers(bare) if len(equal) == 1 or numbers(equal[-1]) else []
    news = [one for one in found if one.rstrip("% ") not in request.numbers]
    return (news or found)[-1] if found else None


def is_amount(text: str, request: Request) -> bool:
    """Whether a short text is a number with its unit."""
    found = numbers(without_asides(text))
    return len(found) > 0 and len(set(found) - request.numbers) <= 1 and len(text.split()) <= 5 and ":" not in text


def concluded(text: str, request: Request) -> str | None:
    """The value that a response comes to."""
    text = without_asides(text)
    marked = [unmarked(one) for one in in_bold(text)]
    times = bool(request.times) and not request.value
    amounts = {value_in(one, request): None for one in marked if (clocks(one) if times else is_amount(one, request))}
    said = [one for one in sentences(text) if (clocks(one) if times else numbers(unmarked(one)))]
    if not said:
        return None
    if len(amounts) == 1:
        return next(iter(amounts))
    last = said[-1]
    if last not in sentences(text)[-_LAST:] or RANGE.search(last):
        return None
    several = len(set(numbers(unmarked(last)))) > 1 and _news(last, request) != 1
    wordless = not any(one.isalpha() for one in last)
    if several and (wordless or not request.sum) and not times and not (_EQUALS.search(last) or dates(last)):
        return None  # a range, a ranking, or some figures by the way
    return value_in(last, request)


def _news(sentence: str, request: Request) -> int:
    """How many numbers of a sentence are not the request's."""
    return len(set(numbers(without_asides(unmarked(sentence)))) - request.numbers)


def named(text: str, request: Request) -> str | None:
    """The few words that the last sentence of a response adds to the question, or that are marked there."""
    said = sentences(text)
    if not said or len(said[-1]) > 200 or said[-1].rstrip().endswith(("?", "？", "؟", ":", "：")):
        return None
    bold = in_bold(said[-1])
    if len(bold) == 1 and len(bold[0].split()) <= _FEW:
        return unmarked(bold[0]).strip(" .:")
    rest = without_echo(said[-1], request)
    return rest.strip(" .") if len(rest.split()) <= _FEW and echoes(unmarked(said[-1]), request) else None
