"""Whether a request wants an answer, and which one a response gives; the extractor `auto` on top of that.

Answers are read by shape: slots, closed sets, short wholes, the value at the end. A few words tell what is a text.
"""

import math
from copy import copy
from dataclasses import replace

from suffice.answers.conclusion import RANGE, concluded, is_amount, named, value_in, whole
from suffice.answers.extract import stated
from suffice.answers.extractor import FEW_TOKENS, Evidence, Extractor, register_extractor
from suffice.answers.fields import is_json
from suffice.answers.forms import chosen, chosen_letter, verdict
from suffice.answers.prose import bounded, boxed, date, numbers, unfenced, unmarked
from suffice.answers.requests import LINE_LABEL, UNKNOWN, Messages, Request, is_asking, read_request
from suffice.answers.structure import Structure
from suffice.answers.words import WORDS, folded, is_unspaced, within
from suffice.response import Response

_LONGEST = 20_000
_FEW, _GROUNDS = 20, 40  # words of an either/or reply, and of a yes or no with reasons
_SIGNS = 4  # of a word without spaces around it
_LABEL = 8  # tokens: who allows no more wants a label
_FILLED = 10  # words in a slot; more are a text
_SPAN = 4  # a request has so many times the words of its span
_ENOUGH, _MORE = 400, 1600  # characters of what may be, or end in, an answer


def wants_answer(request: Messages) -> bool | None:
    """Whether a request's messages ask for one answer: surely, surely not, or None where a response will show.

    It is sure where the request names the place of its answer or all that it may be, and surely not for a text.

    >>> ask = lambda text: wants_answer([{"role": "user", "content": text}])
    >>> ask("Is 91 prime? Answer yes or no."), ask("Write a poem on 91."), ask("Is 91 prime?")
    (True, False, None)
    """
    asked = read_request(request)
    if asked.makes_text:
        return None if asked.boxed or any(slot.close or slot.is_answer for slot in asked.slots) else False
    return True if asked.shows_place and not asked.json else None  # in JSON, a response shows its fields


def has_answer(request: Messages, response: str) -> Evidence | None:
    """The answer that a response gives to a request; None where there is nothing to vote on.

    >>> has_answer([{"role": "user", "content": "How many are 3 + 4?"}], "Three and four are 7.")
    Evidence(answer='7', kind='conclusion', certain=True)
    """
    asked, text = read_request(request) if request else UNKNOWN, bounded(response, _LONGEST)
    if inside := boxed(text):
        return None if asked.makes_text and not asked.boxed else Evidence(_boxed(inside, asked), "boxed", True)
    if is_json(unfenced(text)) and (asked.json or "{" in text):
        label = chosen(text, asked.labels) if asked.labels and text.count('":') == 1 else None
        return Evidence(label, "option", True) if label else None
    for slot in asked.slots:
        said = slot.read(text)
        by_the_way = not (slot.close or slot.is_answer) and len(text.split()) > _GROUNDS  # as "Sources: …" is
        if said is not None and len(said.split()) <= _FILLED and not by_the_way:
            return Evidence(_spelled(said, asked), "slot", slot.sure and not asked.makes_text) if said else None
    filled = asked.labels_of_lines.intersection(map(folded, LINE_LABEL.findall(text)))
    if asked.makes_text or not text.strip() or len(filled) > 1:  # of several places none is that of the answer
        return None
    if closed := _chosen(text, asked):
        said, label = folded(unmarked(unfenced(text))), folded(closed)
        shown = bool(asked.letters) or asked.verdict or asked.only or said.startswith(label) or said.endswith(label)
        return Evidence(closed, "option", shown)
    if (asked.value or asked.times) and (value := concluded(text, asked)):
        estimated = RANGE.search(text) or "~" in text or "≈" in text
        return Evidence(value, "conclusion", asked.sum and not estimated)
    one_word = len(text.split()) == 1 and asked.text != ""
    if asked.asks and (one_word or not asked.value) and (found := _open(text, asked)):
        return found
    said = unmarked(unfenced(text)).strip(" .!。")
    few = len(said) > 1 and _SPAN * len(folded(said).split()) <= len(asked.text.split())
    return Evidence(said, "option") if few and within(folded(said), asked.text) else None


def _open(text: str, asked: Request) -> Evidence | None:
    """Read a response to a mere question: agreement decides."""
    if asked.alternatives and len(text.split()) <= _FEW and (one := chosen(text, asked.alternatives)):
        return Evidence(one, "option", True)
    short = whole(text, asked)
    few = len(text.split()) <= _GROUNDS and not (short and date(short))
    value = concluded(text, asked) if asked.figures and few else None
    said_again = is_asking(asked.question) and value in numbers(asked.question)
    if value and not said_again:
        return Evidence(value, "conclusion")
    if len(text.split()) <= _GROUNDS and (said := verdict(text)):
        return Evidence(said, "option")
    if short:
        word = len(text.split()) == 1 and (len(text) <= _SIGNS or not is_unspaced(text))
        return Evidence(short, "short", asked.only and word)
    ended = named(text, asked) if len(text) <= _MORE else None
    return Evidence(ended, "conclusion") if ended else None


def _chosen(text: str, asked: Request) -> str | None:
    if asked.letters:
        return chosen_letter(text, asked.letters)
    label = chosen(text, asked.labels)
    return (verdict(label or text) if asked.verdict else None) or label


def _boxed(inside: str, asked: Request) -> str:
    """Strip all but the end of an equation, the letter of an option, and the number of a unit."""
    left, _, right = inside.rpartition("=")
    if left and not any(one.isalpha() for one in left.replace("\\frac", "")):
        return right.strip() or inside
    letter = chosen_letter(inside, asked.letters) if asked.letters else inside[1] if inside[2:4] == ") " else None
    number, unit, _ = inside.partition("\\text")
    number = number.rstrip("\\ ,")
    return letter or (number if unit and number.lstrip("$-").replace(".", "").isdigit() else inside)


def _spelled(said: str, asked: Request) -> str:
    """Write the content of a slot in one spelling."""
    amount = value_in(said, asked) if asked.value and is_amount(said, asked) else None
    return _chosen(said, asked) or amount or said


@register_extractor("auto")
class AutoExtractor(Extractor):
    """What a person would call the response's answer, read in the light of the request where that is known.

    Where somebody asked for a vote, any letter or number will do, unless the request asks for a text.
    """

    quick = True
    _messages: Messages | None = None
    _asked = True
    _for_a_label = False

    def wants_answer(self, messages: Messages) -> bool | None:
        return wants_answer(messages)

    def for_request(self, messages: Messages, *, asked: bool = True, most_tokens: int | None = None) -> "AutoExtractor":
        known, most = copy(self), math.inf if most_tokens is None else most_tokens
        known._messages, known._asked, known._for_a_label = messages, asked, most <= _LABEL
        # What ends before the box has not come to its answer.
        known.takes_cut = most <= FEW_TOKENS and not read_request(messages).boxed
        return known

    def for_scout(self, scout: Response) -> Extractor | None:
        """Read fields where the scout is JSON without an answer."""
        if self.evidence(scout) is not None:
            return self
        text, asked = unfenced(scout.said or ""), read_request(self._messages or [])
        fits = not asked.makes_text and (asked.json or (is_json(text) and "{" in text))
        is_nested = isinstance(Structure().value(scout), dict | list)
        return Structure().for_scout(scout) if fits and is_nested else None

    def is_hopeless(self, begun: str) -> bool:
        """Give up by length, where the request names no place for an answer."""
        if self._messages is None or len(begun) <= _ENOUGH:
            return False
        asked = read_request(self._messages)
        return not (asked.shows_place or asked.value or asked.figures)

    def evidence(self, response: Response) -> Evidence | None:
        """Read by shape, else what is stated anywhere, where a vote was asked for."""
        text = self.whole(response)
        if not text:
            return None
        found = has_answer(self._messages or [], text)
        if found and self._for_a_label:
            found = replace(found, certain=True)
        if self._messages is None:
            return found if boxed(text) else self._any(text) or found
        return found or (self._any(text) if self._asked else None)

    def _any(self, text: str) -> Evidence | None:
        refuses = WORDS["aside"].open(folded(text)) or (self._messages and wants_answer(self._messages) is False)
        said = None if refuses or is_json(unfenced(text)) else stated(text)
        return Evidence(said, "conclusion", True) if said else None

    def extract(self, response: Response) -> str | None:
        found = self.evidence(response)
        return found.answer if found else None
