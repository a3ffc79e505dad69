"""The result of a calculation: before it, or at its end."""

import re

from suffice.answers import foreign, prose, values
from suffice.answers.prose import in_bold, sentences, unmarked, words_of
from suffice.answers.requests import UNASKED, Question
from suffice.answers.stated import NUMBER, plain_number
from suffice.answers.verdicts import SMALL
from suffice.answers.whole import PERSONAL, SEVERAL

_HEAD = re.compile(r"(?P<head>[^\n:;(–—]{1,40}?)(?P<end>\s*(?:[:;(–—\n]|\s-\s|,\s(?!\d)|\.\s|$))")


def lead(text: str, question: Question) -> str | None:
    """An amount that opens the text, and then how it came about."""
    bare = unmarked(text)
    asked = question.want == "number"
    head = _HEAD.match(bare)
    if not head or _ITEM.match(text) or re.search(r"(?:^|\n)\s*2[.)]\s", bare) or prose.has_code(text):
        return None
    enumerated = re.match(r"\d{1,2}[.)]\s", bare) is not None
    if not asked and (
        enumerated or len(bare.split()) > 60 or bare.count("\n") > 3 or question.want not in ("any", "number")
    ):
        return None
    said, line = head["head"], re.sub(r"\([^()]*\)", "", bare.partition("\n")[0])
    if re.search(r", so\b", line) or (
        "=" in line and not head["end"].strip().startswith(":")
    ):  # a calculation that begins with a number
        return None
    if not asked and not re.match(r"\W{0,3}\d+(?!\s+[A-Z][a-z]{3})", said):  # "5 Tips: …" is a heading
        return None
    return values.amount(said, question.scale, longest=4 if not asked else 6)


SO = re.compile(
    r"\W*(?:so|therefore|thus|hence|in total|altogether|in all|finally|overall|in conclusion|this means|that means|"
    r"as a result|consequently|the total|total|the result|result|also|somit|daher|insgesamt|donc|por lo tanto|"
    r"así que)\b"
    r"|.*\b(?:in total|altogether|in all|a total of|in the end|insgesamt|au total|en total|combined|overall|is left|"
    r"are left)\b",
    re.IGNORECASE,
)
_EQUATION = re.compile(
    rf"(?:(?:=|≈|→|⇒|equals|equal to)\s*|:\s+)(?P<value>(?:[€£¥]|USD )?\s*{NUMBER.pattern})(?P<after>[^=≈\d\n]*)$"
)
_CHECK = re.compile(
    r"\W*(?:(?:you can |we can |let['’]s |to |as a )?(?:double-)?(?:check|verif)|proof|probe|note|here['’]s how|"
    r"this is because|"
    r"substitut)",
    re.IGNORECASE,
)
_COMES_TO = re.compile(
    rf"\b(?:that['’]s|that is|is|are|was|makes?|gives?|leaves?|left with|total of|comes? to|get|pays?|owes?|sind|"
    rf"bleiben|"
    rf"reste|hay)"
    rf"(?: \w+){{0,2}}? (?P<value>[€£¥]?{NUMBER.pattern})(?:\s+[^\W\d_.]+){{0,4}}\s*(?:\([^()]*\)|:.*)?[.!]*$"
)
_ITEM = re.compile(r"[ \t]*(?:[-*•]|\d{1,2}[.)])[ \t]+\S")


def conclusion(text: str, question: Question) -> str | None:
    """The result at the end of a calculation."""
    asked = question.want == "number"
    if question.want not in ("any", "number", "name") or question.options or prose.has_code(text) or "|--" in text:
        return None
    if foreign.is_other_script(text):
        return None
    said = [one for one in sentences(text) if unmarked(one) and not _CHECK.match(one)]
    if not said or len(text.split()) > (900 if asked else 200) or (not asked and prose.is_laid_out(text)):
        return None
    alone = len(said) == 1 and question.want != "name"
    places = [said[-1], *said[-2:-4:-1], said[0]] if asked else said[-1:]
    places = [one for one in places if len(one.split()) <= 40 and (asked or not _ITEM.match(one))]
    last = _EQUATION.search(unmarked(said[-1]))
    if asked and last and len(last["after"].split()) <= 6 and not re.search(r" and | or |,", unmarked(said[-1])):
        return _number_in(last["value"])
    results = [result for one in places if (result := _result(one, question, asked, alone))]
    fresh = [result for result in results if result not in question.numbers]
    return next(iter(fresh or results), None)


_BASE = re.compile(r"(?<=\d)(?:_?\{\d{1,2}\}|_\d{1,2})")
_ROUNDED = re.compile(rf"(=\s*{NUMBER.pattern})\s*\(?(?:≈|≃|~|or about|or approximately|approximately)[^=]*$")
"""What follows an exact result: its value, rounded."""


def _result(sentence: str, question: Question, asked: bool, alone: bool) -> str | None:
    """The number that a sentence comes to."""
    bare = _BASE.sub("", last_clause(unmarked(sentence)))
    bare = _ROUNDED.sub(r"\1", bare)
    several = SEVERAL.search(bare)
    if several:
        return several[0]
    equation = _EQUATION.search(re.sub(r"\s\([^()]*\)\W*$", "", bare))
    if equation and len(equation["after"].split()) <= 6:
        return _number_in(equation["value"])
    bold = [one for one in (values.amount(unmarked(span)) for span in in_bold(sentence)) if one]
    if len(bold) == 1 and (asked or alone or SO.match(bare) or sentence.rstrip(".! ").endswith("**")):
        return bold[0]
    numbers = [_number_in(number[0]) for number in NUMBER.finditer(_without_labels(bare))]
    concludes = SO.match(bare) is not None
    if not numbers:
        return _spoken(bare, question) if asked else None
    fresh = [number for number in numbers if number.rstrip("%").strip() not in question.numbers]
    if not (asked or concludes or (alone and _is_plain(bare))):
        return None
    if question.scale and (graded := re.search(rf"(\d+(?:\.\d+)?)\s*(?:/|out of|of)\s*{question.scale}\b", bare)):
        return graded[1]
    if len(set(numbers)) == 1:
        return numbers[0]
    percents = {number for number in numbers if number.endswith("%")}
    if asked and len(percents) == 1 and question.words & _PERCENT:
        return percents.pop()
    outside = {_number_in(one[0]) for one in NUMBER.finditer(re.sub(r"\([^()]*\)", "", bare))} & set(fresh)
    if asked and len(outside) == 1:
        return outside.pop()
    if asked and (of_it := _of_what_was_asked(bare, question)):
        return of_it
    if asked and len(set(fresh)) == 1:
        return fresh[0]
    comes = _COMES_TO.search(bare) if asked else None
    if comes:
        return _number_in(comes["value"])
    before = [plain_number(number[0]) for number in NUMBER.finditer(re.split(r":\s|\s\([^()]*\)\W*$", bare)[0])]
    if asked and len(before) == 1 and before[0] not in question.numbers:
        return before[0]
    return numbers[-1] if asked and concludes else None


_PERCENT = frozenset(("percent", "percentage", "%", "percents"))


_CLAUSE = re.compile(r"\W*(?:if|since|because|given|with|after|when|for|at|so if)\b", re.IGNORECASE)


def _of_what_was_asked(sentence: str, question: Question) -> str | None:
    """The number in the one part of a sentence that speaks of what was asked: "Ann is 14 and Tom is 10"."""
    found = []
    for part in re.split(r", (?:and |but |while )?|;| and | but | while ", sentence):
        if _CLAUSE.match(part):
            continue
        result = part.rpartition("=")[2]
        numbers = {_number_in(number[0]) for number in NUMBER.finditer(result)} - question.numbers
        subject = [word for word in words_of(part) if word in question.words and word not in SMALL]
        if numbers and subject:
            found.append((subject, numbers))
    return found[0][1].pop() if len(found) == 1 and len(found[0][1]) == 1 else None


def _is_plain(sentence: str) -> bool:
    """Whether a sentence is short and states something, to nobody in particular."""
    short = sentence[:1].isupper() and len(sentence.split()) <= 15
    return short and not PERSONAL.search(sentence) and not re.search(r"[{};<>|\\~]|--\w|\w\(", sentence)


def last_clause(sentence: str) -> str:
    """What a sentence comes to after its "so", and before its "because"."""
    clause = re.split(
        r"[,;] (?:and )?(?:so|therefore|thus|hence|which means|meaning|that is|i\.e\.(?=[ ,]))(?!\w),?", sentence
    )[-1]
    clause = re.split(r",? (?:of which|because|since|as|due to|da|weil|denn|car|puisque|porque|ya que)\b", clause)[0]
    return clause if re.search(r"\d", clause) or _spoken(clause, UNASKED) else sentence


def _number_in(text: str) -> str:
    return plain_number(re.sub(r"^(?:[€£¥]|USD |\+ |- )\s*", "", text.strip()))


def _without_labels(text: str) -> str:
    """Without what numbers a part of the text: "Step 3:", "section 8.2"."""
    return re.sub(
        r"\b(?:step|section|part|chapter|figure|table|page|article|clause|question|version|no\.|"
        r"#)\s*\d[\d.]*:?",
        "",
        text,
        flags=re.I,
    )


def _spoken(text: str, question: Question) -> str | None:
    """The one number of a sentence that is written in words."""
    found, place = set(), 0
    for word in re.finditer(r"\b[a-z]+", text, re.IGNORECASE):
        if word.start() >= place and (spoken := values.number_in_words(text[word.start() :])):
            found.add(str(spoken[0]))
            place = word.start() + spoken[1]
    found -= {"1"} if len(found) > 1 else set()
    return found.pop() if len(found) == 1 else None
