r"""Slots: the place that a request names for its answer, delimiters with a placeholder between them, by shape alone.

`[[rating]]`, `<grade>…</grade>`, `Answer: X`, `FINAL:`, `VERDICT=PASS`, `#### `, or a quoted or fenced line with
something to fill in. No language is needed for it.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from suffice.answers.prose import unmarked
from suffice.answers.words import ANSWERS, folded

_PLACE = (
    r"\w+(?:\|\w+)+|<[^<>\n]{1,60}>|\[[^\[\]\n]{1,60}\]|\{[^{}\n]{0,60}\}|\(\w[^()\n]{0,60}\)|\.{3}|…|_{2,}|\b[XYNZ]\b"
)
"""What stands for something to be filled in."""
_PAIR = re.compile(r"(\[\[|<<|\{\{|【)([^\[\]<>{}【】\n]{0,60})(\]\]|>>|\}\}|】)")
_TAG = re.compile(r"<([^\W\d][\w-]{0,30})>(?:\s*(.{0,60}?)\s*</\1>)?", re.DOTALL)
_QUOTED = re.compile(
    rf"(?:[\"“„‘`«「『]|(?<!\w)')\s*(?P<open>[^\"“”'‘’`«»「」『』\n]{{2,40}}?)\s*(?P<loud>(?!))?"
    rf"(?P<place>{_PLACE}|(?<=[:=：])\s*[^\"“”`«»「」『』\n:=：]{{0,30}}?)\s*"
    r"[^\w\"”'’`»」』\n]{0,3}[\"”'’`»」』]"
)
_LINE = re.compile(
    r"^[ \t>*•-]*(?P<open>[^\W\d_][^\n:=：<>\[\]{}\"“”„‘’'`«»「」.?!。？！]{0,30}?\s*[:：])[ \t*]*"
    rf"(?P<place>{_PLACE})[^\w\n]*$"
    r"|(?<![\w\"])(?P<loud>[A-Z][A-Z_]{2,20}(?: [A-Z_]{3,20})?\s?[:=]|#{4}|[^\W\d_]{2,20}=(?=[XYNZ]\b|<))"
    r"(?=\s|\w|$|[<\[{(\"'`.,])",
    re.MULTILINE,
)
_LONGEST = 200


@dataclass(frozen=True)
class Slot:
    """Where an answer goes: between what opens and what closes it, or up to the end of its line."""

    open: str
    close: str = ""
    placeholders: frozenset[str] = frozenset()
    """What the request has there, folded, which is no answer."""
    sure: bool = True
    """Whether the request shows that something is to be filled in, and not only what looks like a label."""

    @property
    def is_answer(self) -> bool:
        """Whether it, or what stands in it, is called what answers are called."""
        return self.open == "####" or any(ANSWERS.occur_in(one) for one in (folded(self.open), *self.placeholders))

    def read(self, text: str) -> str | None:
        """What a response has there, in the last such place; nothing but the placeholder is an empty text.

        >>> judge = Slot("[[", "]]", frozenset([" rating "]))
        >>> judge.read("Out of [[rating]]: [[8]]"), judge.read("[[rating]]"), Slot("Answer:").read("ANSWER: **7**")
        ('8', '', '7')
        """
        found: list[str] = self._pattern.findall(text)
        said = [unmarked(one).strip("<> \n") for one in reversed(found)]
        told = [one for one in said if one and folded(one) not in self.placeholders]
        return told[0] if told else "" if said else None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        if self.close:
            return re.compile(
                rf"{re.escape(self.open)}\s*(.{{1,{_LONGEST}}}?)\s*{re.escape(self.close)}", re.DOTALL | re.I
            )
        label, mark = self.open.rstrip(" :=：*_`"), r"[*_`\s]*[:=：]" if self.open[-1] in ":=：" else ""
        bounded = rf"(?<!\w){re.escape(label)}" if label[0].isalnum() else re.escape(label)
        return re.compile(rf"{bounded}{mark}[*_`\s]*([^\n]{{1,{_LONGEST}}})", re.IGNORECASE)


def slots_in(told: str, asked: str) -> tuple[Slot, ...]:
    """The slots of a request, likeliest first: by what the system tells, and what is asked.

    >>> [slot.open for slot in slots_in("", 'Think, then write "FINAL: <number>".')]
    ['FINAL:']
    """
    said = f"{told}\n{asked}"
    shapes = [(one[1], one[3], one[2], True) for one in _PAIR.finditer(said)]
    for tag in _TAG.finditer(said):
        if tag[2] is not None or f"</{tag[1]}>" not in said:  # else what is in it there is a document
            shapes.append((f"<{tag[1]}>", f"</{tag[1]}>", tag[2] or "", True))
    for line in [*_QUOTED.finditer(said), *_LINE.finditer(said)]:
        opens = (line["open"] or line["loud"]).strip(" *")
        place = line["place"] or ""
        if _is_label(opens) and not place.startswith(('{"', "{'")):
            filled = line["open"] is None and opens[-1] == ":" and said[line.end() :].lstrip(" ")[:1].isalnum()
            shapes.append((opens, "", place, not filled))
    found: dict[tuple[str, str], list[tuple[str, bool]]] = {}
    for opens, closes, place, sure in shapes:
        labelled = any(f"{label}{opens}" in said or f"{label} {opens}" in said for label, *_ in shapes)
        if not (labelled and opens[0] == "<"):  # "FINAL: <number>" is one slot
            found.setdefault((opens, closes), []).append((place, sure))
    slots = [
        Slot(*ends, _placeholders(place for place, _ in shown_), any(sure for _, sure in shown_))
        for ends, shown_ in found.items()
    ]
    if sum(slot.sure for slot in slots) > 1:  # a form has many places, and its answer where they are called so
        slots = [replace(slot, sure=slot.sure and slot.is_answer) for slot in slots]
    return tuple(sorted(slots[::-1], key=lambda slot: not (slot.close or slot.is_answer)))  # noqa: C415


def _is_label(opens: str) -> bool:
    named = opens.strip(" :=：,{")
    return bool(named) and (opens[-1] in ":=：#" or len(opens.split()) > 1) and opens != "JSON:"


def _placeholders(inside: Iterable[str]) -> frozenset[str]:
    """What stands for an answer, and is none: a word where there is but one, and neither a number nor a letter."""
    shown = {folded(one) for one in inside if one.strip()}
    words = {one for one in shown if len(one.strip()) > 1 and not one.strip().isnumeric()}
    return frozenset(words) if len(shown) == 1 else frozenset()
