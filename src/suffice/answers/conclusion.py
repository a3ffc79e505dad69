"""What a response comes to: the whole of a short one, or else the value or the name in its last sentence.

What a sentence says again of its question is no part of what it answers: of "The capital of France is Paris." that is
"Paris". It is known by the words of the question, and by a few that say no more than "it is".
"""

import re

from suffice.answers.prose import (
    FENCE,
    NUMBER,
    clocks,
    date,
    dates,
    in_bold,
    in_digits,
    numbers,
    plain_number,
    sentences,
    unfenced,
    unmarked,
    without_asides,
)
from suffice.answers.requests import Request
from suffice.answers.words import WORDS, folded, is_unspaced, within

_MOST_WORDS, _LONGEST, _MOST_SIGNS = 6, 60, 24  # of what is short; signs where words have no spaces
_GROUNDS = 40  # words of a response that gives its answer first, and then why
_NAME = 3  # words
_LAST = 3  # sentences at the end that may have the value: a courtesy may follow it

_CODE = re.compile(r"`([^`\n]{1,120})`")
_EQUALS = re.compile(r"[=＝≈→⇒]")
_LABELLED = re.compile(r"\b(?:step|section|part|page|no\.|#)\s*\d[\d.]*:?|^\s*\d{1,2}[.)]\s", re.IGNORECASE)
_LEADS_ON = ("?", "？", "؟", ":", "：")
RANGE = re.compile(r"\d[–—-]\d+(?![\d,.]*\s?=)")


def whole(text: str, request: Request) -> str | None:
    """Return a short response, or what its one sentence adds to the question."""
    text = without_asides(text)
    said = sentences(unfenced(text))
    if not said or said[-1].rstrip("*_\"') ").endswith(_LEADS_ON) or WORDS["aside"].open(folded(text)):
        return None
    bare = _trimmed(_without_label(unmarked(unfenced(text))))
    chosen = within(folded(bare), folded(request.question))
    alone = "\n\n" not in bare and len(said) == bare.count("\n") + 1 and _is_short(bare)
    if alone and (chosen or not _echoes(bare, request)):
        return _head(bare)
    if len(text.split()) > _GROUNDS or len(text) > 6 * _GROUNDS:
        return None
    place = text if "```" in text else said[0]
    marked = FENCE.findall(place) or in_bold(place) or _CODE.findall(place)
    apart = [one for one in marked if _is_short(one.strip())]
    if not apart and said[0].rstrip("* ").endswith((":", "：", "?", "？")):
        return None
    rest = unmarked(apart[0]).rstrip(":") if len(apart) == 1 else _without_echo(_without_label(said[0]), request)
    rest = _trimmed(_without_label(rest))
    exclaimed = said[0].rstrip("*_\"' ").endswith(("!", "！"))  # a greeting rather than an answer and its grounds
    known = exclaimed or _is_known(rest, folded(request.question))
    alone = len(said) == 1 or (len(rest.split()) <= _MOST_WORDS // 2 and not known)
    return _head(rest) if alone and _is_short(rest) else None


def _without_label(text: str) -> str:
    """Strip a label of a word or two, as of "Output: 14"."""
    label, mark, rest = text.replace("：", ": ").partition(": ")
    fits = mark and 0 < len(label.split()) <= 2 and not any(one.isdigit() for one in label) and "\n" not in label
    return rest.strip() if fits and rest.strip() else text


def _is_short(text: str) -> bool:
    most = _MOST_SIGNS if is_unspaced(text) else _LONGEST
    return 0 < len(text) <= most and len(text.split()) <= _MOST_WORDS and "\n\n" not in text


def _echoes(bare: str, request: Request) -> bool:
    """Whether two words, or four signs, are the question's."""
    if is_unspaced(bare):
        return any(bare[:length] in request.question for length in range(4, len(bare)))
    shared = [word for word in folded(bare).split() if f" {word} " in folded(request.question)]
    return len(shared) > 1 or (len(bare.split()) > 1 and _is_known(bare.split()[0], ""))


def _without_echo(sentence: str, request: Request) -> str:
    """Strip the question's words from both ends of a sentence, unless nothing is left.

    Where words have no spaces around them, these are the longest runs of signs that the question has too.

    >>> _without_echo("日本の首都は東京です。", Request(question="日本の首都はどこですか？"))
    '東京'
    """
    bare, question = _trimmed(without_asides(unmarked(sentence))), request.question
    if is_unspaced(bare) and " " not in bare:
        start = max((length for length in range(len(bare)) if bare[:length] in question), default=0)
        end = max((length for length in range(len(bare) - start) if bare[len(bare) - length :] in question), default=0)
        return bare[start : len(bare) - end].strip(" はが是为：:") or bare
    known, said = folded(question), bare.split()
    while len(said) > 1 and _is_known(said[0], known) and not within(folded(" ".join(said)), known):
        said = said[1:]
    while len(said) > 1 and _is_known(said[-1], known) and not within(folded(" ".join(said)), known):
        said = said[:-1]
    return " ".join(said)


def _is_known(word: str, question: str) -> bool:
    """Whether a word is the question's, with any ending, or a filler."""
    if "(" in word:  # a formula
        return False
    word = folded(word).rstrip().removesuffix("'s").rpartition("'")[2]  # of "c'était" what the question has too
    known = f"{word} " in question or (len(word) > 4 and word[:5] in question)
    return len(word) < 2 or known or WORDS["it_is"].open(f"{word} ")


def _head(text: str) -> str:
    """Cut an explanation, which follows a dash or a comma."""
    for sign in (" – ", " — ", " - "):
        text = text.partition(sign)[0] or text
    head, comma, rest = text.partition(", ")
    text = head if comma and rest[:1].islower() and len(rest.split()) > 1 and "," not in rest else text
    return date(text) or text


def _trimmed(text: str) -> str:
    bare = without_asides(text).strip(" \t\n\"“”'‘’`*_").rstrip(".!,;:。！।").strip(" \"“”'‘’`*_")
    number, point, rest = bare.partition(".")  # of a list, or of a move
    return rest.strip() if point and number.isdigit() and rest.strip() and not rest[0].isdigit() else bare


def value_in(sentence: str, request: Request) -> str | None:
    """Return the value after the last sign of equality, or the last new one."""
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
    found = numbers(without_asides(text))
    return len(found) > 0 and len(set(found) - request.numbers) <= 1 and len(text.split()) <= 5 and ":" not in text


def concluded(text: str, request: Request) -> str | None:
    text = without_asides(text)
    times = bool(request.times) and not request.value
    marked = map(unmarked, in_bold(text))
    amounts = {value_in(one, request) for one in marked if (clocks(one) if times else is_amount(one, request))}
    said = [one for one in sentences(text) if (clocks(one) if times else numbers(unmarked(one)))]
    if not said:
        return None
    if len(amounts) == 1:
        return amounts.pop()
    last = said[-1]
    if last not in sentences(text)[-_LAST:] or RANGE.search(last):
        return None
    news = set(numbers(without_asides(unmarked(last)))) - request.numbers
    several = len(set(numbers(unmarked(last)))) > 1 and len(news) != 1
    wordless = not any(one.isalpha() for one in last)
    if several and (wordless or not request.sum) and not times and not (_EQUALS.search(last) or dates(last)):
        return None  # a range, a ranking, or some figures by the way
    return value_in(last, request)


def named(text: str, request: Request) -> str | None:
    """Return the few words that the last sentence adds to the question, or marks."""
    said = sentences(text)
    if not said or len(said[-1]) > 200 or said[-1].rstrip().endswith(_LEADS_ON):
        return None
    bold = in_bold(said[-1])
    if len(bold) == 1 and len(bold[0].split()) <= _NAME:
        return unmarked(bold[0]).strip(" .:")
    rest = _without_echo(said[-1], request)
    return rest.strip(" .") if len(rest.split()) <= _NAME and _echoes(unmarked(said[-1]), request) else None
