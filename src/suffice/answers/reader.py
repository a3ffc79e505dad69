"""Whether a request names its answer, and what a response answers; the extractor `auto` on top of that.

Answers are read by shape: slots, closed sets, short wholes, the value at the end.
"""

import math
import re
from copy import copy
from functools import partial
from typing import Any

from suffice.answers.conclusion import (
    MAX_SENTENCE_WORDS,
    concluded,
    final,
    is_amount,
    is_brief,
    is_figure,
    outcome_of,
    value_in,
)
from suffice.answers.extract import refuses, stated
from suffice.answers.extractor import FEW_TOKENS, Evidence, Extractor, TextExtractor, register_extractor
from suffice.answers.forms import chosen, chosen_letter, lettered, verdict
from suffice.answers.keys import Keys, WordKeys
from suffice.answers.prose import bounded, boxed, in_bold, numbers, unfenced, unmarked
from suffice.answers.requests import Messages, Request, read_request, texts_of
from suffice.answers.structure import Structure
from suffice.answers.words import ANSWER, folded, within
from suffice.json_values import is_json, leaves
from suffice.response import Response

MAX_CHARACTERS = 20_000
MAX_LEAVES = 3  # of an object that no schema names: a verdict with its reasons
MAX_SLOT_WORDS = 12  # more are a text
MAX_NAMED_WORDS, MAX_SHORT_WORDS, MAX_FINAL_WORDS = 20, 6, 12
MAX_LABEL_TOKENS = 8  # a client that allows no more wants a label

_QUESTION_MARKS = ("?", "？", "؟")
_REASON = re.compile(r"\s[–—-]+\s|[.,;:(（。，：]|\n")


def wants_answer(request: Messages) -> bool | None:
    """Whether a request names its answer; None where a first response has to show it, False for all else.

    >>> ask = lambda text: wants_answer([{"role": "user", "content": text}])
    >>> ask("Is 91 prime? Answer yes or no."), ask("What is 91 / 7?"), ask("Write a poem on 91.")
    (True, None, False)
    """
    asked = read_request(request)
    return True if asked.named else None if (asked.hinted or asked.sum or asked.json) and not asked.form else False


def has_answer(request: Messages, response: str) -> Evidence | None:
    """The answer that a response gives to a request; None where there is nothing to vote on.

    >>> has_answer([{"role": "user", "content": "How many are 3 + 4?"}], "Three and four are 7.")
    Evidence(answer='7', kind='conclusion')
    """
    asked, text = read_request(request), bounded(response, MAX_CHARACTERS)
    if inside := boxed(text):
        return Evidence(_boxed(inside, asked), "boxed")
    if not text.strip() or asked.form:
        return None
    if is_json(unfenced(text)) and not text.startswith("[["):
        label = chosen(text, asked.labels) if asked.labels and text.count('":') == 1 else None
        return Evidence(label, "option") if label else None
    for slot in asked.slots:
        said = slot.read(text)
        if said is not None and len(said.split()) <= MAX_SLOT_WORDS:
            if len(said) == 1 and not asked.letters and lettered(text):
                return None  # of options that it made up
            amount = value_in(said, asked) if is_amount(said, asked) else None
            return Evidence(_chosen(said, asked) or amount or said, "slot") if said else None
    if asked.letters or asked.labels:
        closed = _chosen(text, asked)
        return Evidence(closed, "option") if closed else None
    if asked.scale and (rating := _rating(text, *asked.scale)):
        return Evidence(rating, "option")
    if asked.sum and (value := concluded(text, asked)):
        return Evidence(value, "conclusion")
    if (
        (asked.named or asked.hinted)
        and not refuses(text)
        and (said := final(text, MAX_NAMED_WORDS if asked.brief else MAX_SHORT_WORDS, last_line=asked.brief))
    ):
        value = outcome_of(said, asked)
        return Evidence(value, "short") if value else None
    return None


def shown_answer(request: Messages, response: str) -> Evidence | None:
    """Return the answer that a first response shows, to a request that does not name its place.

    A sum has to be concluded, and an answer that is named in words given as such. In any other case the response is
    hardly more than a piece of the request, as if something in it was chosen or found, or than a figure.

    >>> has = lambda text: shown_answer([{"role": "user", "content": "Is it spam or ham? Win 500!"}], text)
    >>> has("Spam."), has("That looks very much like spam to me, so be careful."), has("A prize.")
    (Evidence(answer='Spam', kind='short'), None, None)
    """
    asked, text = read_request(request), bounded(response, MAX_CHARACTERS)
    if asked.form or (not asked.asks and any(one in text for one in _QUESTION_MARKS)):
        return None  # it makes something up, or asks back
    found = has_answer(request, text)
    if found and found.kind == "boxed":
        return found if asked.hinted or asked.sum else None
    if found and found.kind == "conclusion":
        is_new = found.answer not in asked.numbers or len(text.split()) <= MAX_SENTENCE_WORDS
        return found if is_new else None
    if found and found.kind == "slot":
        return found if is_brief(found.answer) else None
    if text.rstrip().endswith((*_QUESTION_MARKS, "!", "！")) or refuses(text):
        return None
    if found and is_json(unfenced(text)):
        return found
    if asked.hinted:
        parts = (final(text, last_line=True) or "", _REASON.split(unmarked(text), maxsplit=1)[0])
        return found if found and any(_is_answer(one, found.answer, asked) for one in parts) else None
    return _shown_in_short(text, asked)


def _shown_in_short(text: str, asked: Request) -> Evidence | None:
    said, bold = final(text), in_bold(text)
    if not said:
        return None
    if len(bold) == 1 and bold[0] in said and _is_piece(bold[0], asked):
        said = bold[0]
    if _is_piece(said, asked):
        return Evidence(said, "short") if _is_labelled(text, said, asked) else None
    return Evidence(said, "short") if is_figure(said) or (asked.worded and is_brief(said)) else None


def _is_piece(said: str, asked: Request) -> bool:
    """Whether a name or a label stands in the request."""
    return is_brief(said) and within(folded(said), asked.words)


def is_grounded(request: Messages, answer: str) -> bool:
    """Whether an answer is a piece of the request, or a figure that it asks for: it was not made up."""
    asked = read_request(request)
    return within(folded(answer), asked.words) or (is_figure(answer) and bool(asked.sum or asked.hinted))


def _is_answer(part: str, answer: str, asked: Request) -> bool:
    """Whether a part of a response begins or ends with the answer, and is hardly more."""
    said, ends = folded(part), folded(answer)
    is_label = said.startswith(ends) or said.endswith(ends) or (asked.verdict and verdict(part) == answer)
    return is_label and is_brief(part)


def _is_labelled(text: str, said: str, asked: Request) -> bool:
    """Whether the label before an answer, if there is one, is of the request or what answers are called."""
    label, mark, _ = unmarked(text).replace("：", ":").partition(":")
    called = folded(label)
    return not mark or label in said or within(called, asked.words) or ANSWER.occur_in(called)


def _chosen(text: str, asked: Request) -> str | None:
    if asked.letters:
        return chosen_letter(text, asked.letters)
    label = chosen(text, asked.labels)
    return (verdict(label or text) if asked.verdict else None) or label


def _rating(text: str, least: int, most: int) -> str | None:
    """Return the only number of a short text, or of its end, that fits a scale."""
    said = final(text, last_line=True)
    found = [one for one in numbers(said or "") if one.replace(".", "", 1).isdigit() and least <= float(one) <= most]
    return found[0] if found else None


def _boxed(inside: str, asked: Request) -> str:
    """Strip all but the end of an equation, the letter of an option, and the number of a unit."""
    left, _, right = inside.rpartition("=")
    if left and not any(one.isalpha() for one in left.replace("\\frac", "")):
        return right.strip() or inside
    letter = chosen_letter(inside, asked.letters) if asked.letters else inside[1] if inside[2:4] == ") " else None
    number, unit, _ = inside.partition("\\text")
    number = number.rstrip("\\ ,")
    return letter or (number if unit and number.lstrip("$-").replace(".", "").isdigit() else inside)


@register_extractor("final")
class FinalExtractor(TextExtractor):
    """What a short response says, or what a longer one states or marks at its end."""

    def __init__(self) -> None:
        super().__init__(partial(final, most=MAX_FINAL_WORDS), quick=True, kind="short")
        self._known = frozenset[str]()

    def for_request(self, messages: Messages, **about: Any) -> Extractor:
        known = copy(self)
        known._known = frozenset(folded(" ".join(texts_of(messages))).split())
        return known

    def keys(self) -> Keys:
        return WordKeys(self._known)


class ShownExtractor(FinalExtractor):
    """The same, where answers are pieces of the request."""

    def for_request(self, messages: Messages, **about: Any) -> Extractor:
        return self


@register_extractor("auto")
class AutoExtractor(Extractor):
    """What a person would call the response's answer, read in the light of the request where that is known.

    Where somebody asked for a vote, any letter or number will do.
    """

    quick = True
    _messages: Messages | None = None
    _asked = True

    def wants_answer(self, messages: Messages) -> bool | None:
        return wants_answer(messages)

    def for_request(self, messages: Messages, *, asked: bool = True, most_tokens: int | None = None) -> Extractor:
        known, most = copy(self), math.inf if most_tokens is None else most_tokens
        if read_request(messages).closed_fields:
            return Structure().for_request(messages)
        known._messages, known._asked = messages, asked or most <= MAX_LABEL_TOKENS
        # What ends before the box has not come to its answer.
        known.takes_cut = most <= FEW_TOKENS and not read_request(messages).boxed
        return known

    def for_scout(self, scout: Response) -> Extractor | None:
        text = self.whole(scout) or ""
        asked = read_request(self._messages or [])
        if shown_answer(self._messages or [], text):
            return self if asked.hinted or has_answer(self._messages or [], text) else ShownExtractor()
        fields = Structure().for_request(self._messages or [])
        is_object = is_json(unfenced(text)) and len(leaves(fields.value(scout))) <= MAX_LEAVES
        if not is_object or asked.form:
            return None
        (leaf, *more) = leaves(fields.value(scout)).values() or (None,)
        is_piece = isinstance(leaf, bool | int | float) or (isinstance(leaf, str) and within(folded(leaf), asked.words))
        return fields.for_scout(scout) if asked.json else fields if not more and is_piece else None

    def evidence(self, response: Response) -> Evidence | None:
        text = self.whole(response)
        if not text:
            return None
        found = has_answer(self._messages or [], text)
        if self._messages is None:
            return found if boxed(text) else self._any(text) or found
        return found or (self._any(text) if self._asked else None)

    def _any(self, text: str) -> Evidence | None:
        is_open = self._messages and not read_request(self._messages).sum
        said = (
            None
            if is_json(unfenced(text))
            else stated(text) or (final(text) if is_open and not refuses(text) else None)
        )
        return Evidence(said, "conclusion") if said else None

    def extract(self, response: Response) -> str | None:
        found = self.evidence(response)
        return found.answer if found else None
