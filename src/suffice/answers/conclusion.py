"""What a response comes to: the whole of a short one, or else the value in its last sentence."""

import re

from suffice.answers.prose import (
    NUMBER,
    STAMP,
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
from suffice.answers.words import NO, VERDICT, folded, is_unspaced

_MOST_WORDS = 6  # of what is short
MAX_STATEMENT_WORDS = 25  # that state a value without a calculation
SIGNS_OF_A_WORD = 2  # where words have no spaces
MAX_FIGURE_WORDS = 8  # that state one where no number was asked for
MAX_SENTENCE_WORDS = 12  # of a named answer; more are a text
MAX_PIECE_WORDS, MAX_PIECE_SIGNS = 4, 8  # of a name or a label; signs where words have no spaces
MAX_UNIT_LETTERS, MAX_UNIT_SIGNS = 12, 3  # after a figure
_LAST = 3  # sentences at the end that may have the value: a courtesy may follow it

_EQUALS = re.compile(r"(?<![=!<>])=(?!=)|[＝≈→⇒]")
_LEADS_ON = ("?", "？", "؟", ":", "：")


def final(text: str, most: int = _MOST_WORDS, last_line: bool = False) -> str | None:
    """Return what a text states as its answer, the whole of a short one, or what its end marks, or its last line.

    >>> final("**Danish**."), final("It is a big one, and old at that. So **no**.")
    ('Danish', 'no')
    """
    text = unfenced(text)
    if _is_short(said := _trimmed(text), most):
        return None if text.rstrip("*_\"') ").endswith(_LEADS_ON) else _without_label(said)
    stated = [*_STATES.finditer(text)]
    if stated and (rest := _trimmed(unmarked(stated[-1][1]))):
        return rest if _is_short(rest, most) else None
    *before, last = sentences(text) or [""]
    bold = in_bold(last)
    is_sentence = not before and len(last.split()) <= MAX_SENTENCE_WORDS and not _LABELS.match(last)
    if len(bold) == 1 and _is_short(bold[0]) and (is_sentence or _trimmed(last).endswith(_trimmed(bold[0]))):
        return _trimmed(unmarked(bold[0]))
    line = text.rstrip().rpartition("\n")[2] if last_line else ""
    is_courtesy = line.rstrip("*_\"') ").endswith((*_LEADS_ON, "!", ">"))
    return _trimmed(line) if _is_short(_trimmed(line), most) and not is_courtesy else None


_STATES = re.compile(r"(?:answer\s*(?:is\b|:)|####)[:\s*]*(.*)", re.IGNORECASE)


_LABELS = re.compile(r"\W*[^*_]{1,40}(?::\W*\*|\*+\s?:)")  # "**Note:** …"


def _without_label(text: str) -> str:
    """Strip a label of a word or two, as of "Output: 14"."""
    label, mark, rest = text.replace("：", ": ").partition(": ")
    fits = mark and 0 < len(label.split()) <= 2 and not any(one.isdigit() for one in label) and "\n" not in label
    return rest.strip() if fits and rest.strip() else text


def _is_short(text: str, most: int = _MOST_WORDS) -> bool:
    signs = 4 * most if is_unspaced(text) else 10 * most
    has_fields = any(one in text for one in ('":', '","', '"}'))
    return 0 < len(text) <= signs and len(text.split()) <= most and "\n" not in text and not has_fields


def _trimmed(text: str) -> str:
    return unmarked(text).strip(" \t\n\"“”'‘’`*_").rstrip(".!,;:。！।").strip(" \"“”'‘’`*_")


def value_in(sentence: str, request: Request) -> str | None:
    """Return the value after the last sign of equality, or the last new one."""
    bare = without_asides(in_digits(unmarked(sentence)))
    if stamps := [one for one in STAMP.findall(sentence) if one not in request.numbers]:
        return str(stamps[-1])
    equal = _EQUALS.split(bare)
    if len(equal) > 1 and (number := NUMBER.search(equal[-1])) and number.start() <= 4:
        return plain_number(number[0])
    found = numbers(bare) if len(equal) == 1 or numbers(equal[-1]) else []
    news = [one for one in found if one.rstrip("% ") not in request.numbers]
    return (news or found)[-1] if found else None


def outcome_of(sentence: str, request: Request) -> str | None:
    """Return what a short answer comes to: its value if the request asks how many, its last word if that is a verdict.

    None for a sentence that is longer, and for the end of the request said again.
    """
    said = folded(sentence)
    if request.words.endswith(said) and len(said.split()) > 2:
        return None
    if request.how_many and (value := value_in(sentence, request)):
        return value
    *before, last = said.split() or [""]
    if VERDICT.are(last) and before and not NO.are(before[-1]):
        return last
    return sentence if len(before) < MAX_SENTENCE_WORDS else None


def is_amount(text: str, request: Request) -> bool:
    found = numbers(without_asides(text))
    return len(found) > 0 and len(set(found) - request.numbers) <= 1 and len(text.split()) <= 5 and ":" not in text


def is_figure(text: str) -> bool:
    """Whether a text is one number, date or time, and at most its unit."""
    plain = in_digits(text)
    found = STAMP.search(plain) or NUMBER.search(plain)
    if not found:
        return False
    before, unit = plain[: found.start()], plain[found.end() :].strip()
    is_apart = before[-1:].isspace() or not any(map(str.isalnum, before))  # "ATLAS-2" is a name
    most = MAX_UNIT_SIGNS if is_unspaced(text) else MAX_UNIT_LETTERS
    fits = len(before) <= MAX_UNIT_LETTERS // 2 and len(unit) <= most and len(unit.split()) < 3
    return is_apart and fits and not any(map(str.isdigit, before + unit))


def is_brief(text: str) -> bool:
    """Whether a text is a name or a label by its length."""
    return len(text) <= MAX_PIECE_SIGNS if is_unspaced(text) else len(text.split()) <= MAX_PIECE_WORDS


def concluded(text: str, request: Request) -> str | None:
    """Return the value that a calculation comes to: in bold, or new in its last sentence."""
    if "```" in text:
        return None
    text = without_asides(text)
    said = sentences(text)
    counted = [one for one in said[-_LAST:] if numbers(unmarked(one)) or STAMP.search(one)]
    if not counted or said[-1].rstrip("*_\"') ").endswith(_LEADS_ON):
        return None
    words = len(text) // SIGNS_OF_A_WORD if is_unspaced(text) else len(text.split())
    if words <= MAX_STATEMENT_WORDS and (stamps := {*STAMP.findall(counted[-1])} - request.numbers):
        return stamps.pop() if len(stamps) == 1 else None
    calculates = _EQUALS.search(text) or words <= (MAX_STATEMENT_WORDS if request.how_many else MAX_FIGURE_WORDS)
    ends = "\n".join([said[0], *said[-_LAST:]])
    amounts = {value_in(one, request) for one in map(unmarked, in_bold(ends)) if is_amount(one, request)}
    if len(amounts) == 1:
        return amounts.pop()
    found = set(numbers(without_asides(unmarked(counted[-1]))))
    if not calculates or (len(found - request.numbers) != 1 and not _EQUALS.search(counted[-1])):
        return None  # some figures by the way
    return value_in(counted[-1], request)
