"""What a request asks for: its slots, its options, a value or a text.

Documents between the first paragraph and the last, and fenced code, are material: they may say "write to us" or "yes or
no" without being meant.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from suffice.answers.forms import Slot, defined, labels, lettered, offered, slots_in
from suffice.answers.prose import bounded, clocks, in_digits, numbers, sentences, without_fences
from suffice.answers.words import WORDS, folded

Messages = Sequence[Mapping[str, Any]]

_LONGEST = 8000  # characters of a message: half at its beginning, half at its end

_SUM = re.compile(
    r"(?<![\w./-])\(?\d[\d.,]*\)?[a-z]?\s?(?:[+*×÷^−]|(?<=\s)-|-(?=\d+\W*$)|[x/](?!\d*/))\s?\(?\d[\d.,]*"
    r"|\d+ ?% (?:of|von|de|di)\b|=\s?[?？]"
)
_PARTS = re.compile(r"[,;:，、；：—–]\s*|\s(?:and|und|et|y|e|и)\s")
LINE_LABEL = re.compile(r"^[>*# \t]*[^\W\d_][\w ]{0,20}[:：](?!\S*//)", re.M)
_CHOOSE = ("sorts", "outputs")
_TELL = (*_CHOOSE, "writes", "open", "texts")
_MOST_SENTENCES, _SENTENCE = 6, 400
_MOST_WORDS_OF_A_SUM = 15
_FOLLOWS = 12
_SHOTS = 2  # examples that show how it goes on


@dataclass(frozen=True)
class Request:
    """What a request asks for."""

    text: str = ""  # all of it, folded
    question: str = ""  # its last sentence that asks
    slots: tuple[Slot, ...] = ()
    letters: Mapping[str, str] = field(default_factory=dict)  # with their texts
    labels: Sequence[str] = ()
    alternatives: Sequence[str] = ()  # in passing: "spam or not spam?"
    verdict: bool = False  # yes or no
    boxed: bool = False
    makes_text: bool = False  # two good replies are seldom the same
    asks: bool = False  # for anything
    value: bool = False  # for a number
    figures: bool = False  # are there to calculate with
    sum: bool = False  # its value can be computed from it
    numbers: frozenset[str] = frozenset()
    labels_of_lines: frozenset[str] = frozenset()  # folded
    times: frozenset[str] = frozenset()  # of day
    continental: bool = False  # 1.234 is above 1000
    json: bool = False  # is shown or named
    only: bool = False  # one thing, and nothing besides

    @property
    def shows_place(self) -> bool:
        """Whether it names the place of its answer, or its options."""
        named = any(slot.sure and (slot.is_answer or slot.open[-1] == "=") for slot in self.slots)
        return bool(named or self.letters or self.boxed or self.verdict)


UNKNOWN = Request(asks=True, value=True)


def read_request(messages: Messages) -> Request:
    """Read the system's instructions, the last user message, and the turns before."""
    said = [(str(one.get("role")), _text(one.get("content"))) for one in messages if isinstance(one, Mapping)]
    told = "\n".join(text for role, text in said if role in ("system", "developer"))
    *before, asked = ["", *(text for role, text in said if role == "user")]
    shown = "\n".join(text for role, text in said if role == "assistant")
    return _read(*(bounded(text, _LONGEST) for text in (told, asked, "\n".join(before), shown)))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if part.get("type") in ("text", "input_text")]
    return "\n\n".join(text for text in texts if isinstance(text, str))


@lru_cache(maxsize=256)  # a request is read when its route is chosen, by its scout and for its vote
def _read(told: str, asked: str, before: str, shown: str) -> Request:
    own = _own(asked)
    frame = [*(one[:_SENTENCE] for one in sentences(without_fences(told))[:40]), *own]
    slots = slots_in(told, asked)
    letters = lettered(asked, any(map(is_asking, own))) or lettered(told, numbered=False)
    asking = [one for one in frame if is_asking(one) or _begins(one, 1, ["questions"]) or _begins(one, 4, _CHOOSE)]
    asking += [one for one in frame if offered(one) and one not in asking]
    found = frozenset(numbers(asked))
    counted = any(WORDS["how_many"].occur_in(folded(one)) or _begins(one, 4, ["computes"]) for one in frame)
    another = bool(found and numbers(shown[-400:])) and len(asked.split()) < _FOLLOWS
    counted = counted or another
    sums = [one for one in sentences(in_digits(without_fences(asked))) if len(one.split()) <= _MOST_WORDS_OF_A_SUM]
    sum_ = len(asked) < 400 and any(map(_SUM.search, sums))
    label = asked.rstrip().rpartition("\n")[2].strip()  # left open at the end of examples, each of which has it filled
    is_open = label.endswith((":", "：", "->", "=>", "→"))
    shots = label if is_open and asked.count(f"\n{label}") > _SHOTS else ""
    closing = [one for one in asking if _closes(one)]
    listed = defined(told) or next(filter(None, map(offered, closing)), []) or labels("\n".join(closing))
    if letters or not listed:
        listed = defined(f"{told}\n{asked}", bulleted=True) if closing and not letters else []
    makes = any(_writes(one, slots) for one in frame[:1])
    if not any(slot.sure for slot in slots) and not letters:  # where there is a place, a text is what is told first
        until = frame[: frame.index(closing[-1]) + 1] if closing else frame  # what follows are exceptions
        makes = makes or any(_makes_text(one, slots) for one in (closing if listed else until))
    question = (asking or frame or [""])[-1]
    several = sum(WORDS["how_many"].occur_in(folded(part)) for part in _PARTS.split(question)) > 1
    given = set(numbers(in_digits("\n".join(own))))
    if len(asked.split()) < 15:
        given.update(numbers(in_digits(f"{before}\n{shown[-400:]}")))
    return Request(
        text=folded(f"{told}\n{before}\n{asked}"),
        question=shots or question,
        slots=slots,
        letters=letters,
        labels=listed,
        alternatives=[] if letters else labels("\n".join(one for one in own if is_asking(one))),
        verdict=all(any(table.are(folded(one)) for one in listed) for table in (WORDS["yes"], WORDS["no"])),
        boxed="\\boxed" in told + asked + shown,
        makes_text=not (counted and len(found) > 1) and makes,
        asks=bool(asking) or bool(shots) or sum_ or counted or any(WORDS["only"].open(folded(one)) for one in frame),
        value=counted or sum_,
        figures=len(given) > 1 and bool(asking),
        sum=sum_ or (counted and len(found) > 1 and not several),
        numbers=found | given,
        labels_of_lines=frozenset(map(folded, LINE_LABEL.findall(f"{told}\n{asked}"))),
        times=frozenset(clocks(asked)) if asking else frozenset(),
        continental={"the", "is", "of", "a", "how", "what"}.isdisjoint(folded(f"{told} {asked}").split()),
        only=bool(shots) or any(WORDS["only"].occur_in(folded(one)) and _begins(one, 3, _CHOOSE) for one in frame),
        json='":' in told + asked or any(" json " in folded(one) for one in frame),
    )


def is_asking(sentence: str) -> bool:
    return sentence.rstrip("*_\"'”’)] ").endswith(("?", "？", "؟", ";"))


def _closes(sentence: str) -> bool:
    """Whether a sentence asks to choose, so that its list is complete."""
    said = folded(sentence)
    told = WORDS["sorts"].open(said, 5) or WORDS["outputs"].open(said, 5) or WORDS["only"].occur_in(said)
    return told or bool(offered(sentence))


def _begins(sentence: str, first: int, tables: Sequence[str]) -> bool:
    """Whether a sentence, or a part of it, begins with a word of some tables."""
    parts = [_without_fillers(part) for part in _PARTS.split(sentence)]
    return any(WORDS[table].open(part, first) for table in tables for part in parts)


def _without_fillers(part: str) -> str:
    said = folded(part).split()
    while said and WORDS["fillers"].are(said[0]):
        said = said[1:]
    return f" {' '.join(said)} "


def _own(asked: str) -> list[str]:
    """Return the user's instructions, without their material."""
    parts = [one for one in without_fences(asked).split("\n\n") if one.strip()] or [""]
    first, last = sentences(parts[0]), sentences(parts[-1]) if len(parts) > 1 else []
    if len(first) > 2 * _MOST_SENTENCES:
        first = first[:_MOST_SENTENCES] + first[-_MOST_SENTENCES:]
    if any(is_asking(one) or _begins(one, 3, _CHOOSE) for one in first):  # what comes after is what it speaks of
        last = [one for one in last if (is_asking(one) and not _makes_text(one)) or WORDS["only"].occur_in(folded(one))]
    elif LINE_LABEL.match(parts[0]) and last and not _begins(parts[0], 3, _TELL):
        first = []
    own = [one[:_SENTENCE] for one in [*first, *last[-_MOST_SENTENCES:]]]
    told = [one for one in own if is_asking(one) or _begins(one, 3, _TELL)]
    return [one for one in own if one in told or not LINE_LABEL.match(one)] or own


def _makes_text(sentence: str, slots: Sequence[Slot] = ()) -> bool:
    """Whether a sentence asks for a text, or anything else that two good replies share seldom."""
    said = folded(sentence)
    is_open = any(WORDS["open"].start(_without_fillers(part)) for part in _PARTS.split(sentence))
    if is_open or WORDS["judges"].occur_in(said) or _writes(sentence, slots):
        return True
    if is_asking(sentence) or WORDS["sorts"].open(said, 2):
        return False
    return WORDS["texts"].open(said, 5 if WORDS["outputs"].open(said, 2) else 10)


def _writes(sentence: str, slots: Sequence[Slot]) -> bool:
    """Whether a sentence asks to write, and neither one word only nor into a slot."""
    said = folded(sentence)
    if not WORDS["writes"].open(said, 5) or any(slot.open in sentence for slot in slots):
        return False
    if WORDS["only"].occur_in(said) and WORDS["notes"].open(said, 5):
        return False
    return not is_asking(sentence) or WORDS["polite"].open(said, 2) or WORDS["writes"].open(said, 2)
