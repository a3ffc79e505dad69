"""The form that a request gives its answer: slots to fill in, or a closed set to choose from.

A slot is a pair of delimiters with a placeholder between them, by shape alone, whatever the language: `[[rating]]`,
`<grade>…</grade>`, `Answer: X`, `FINAL:`, `VERDICT=PASS`, `#### `, or a quoted or fenced line with a gap.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from suffice.answers.prose import in_bold, sentences, unmarked
from suffice.answers.words import WORDS, folded, is_mark, is_unspaced, within

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
    """Where an answer goes: between two delimiters, or up to the end of its line."""

    open: str
    close: str = ""
    placeholders: frozenset[str] = frozenset()  # what the request has there, which is no answer
    sure: bool = True  # else it may be a mere label

    @property
    def is_answer(self) -> bool:
        """Whether it, or what stands in it, is called what answers are called."""
        names = (folded(self.open), *self.placeholders)
        return self.open == "####" or any(map(WORDS["answers"].occur_in, names))

    def read(self, text: str) -> str | None:
        """Return what the last such place holds; a mere placeholder is an empty text.

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
    """Return the slots of a request, likeliest first."""
    said = f"{told}\n{asked}"
    shapes = [(one[1], one[3], one[2], True) for one in _PAIR.finditer(said)]
    for tag in _TAG.finditer(said):
        if tag[2] is not None or f"</{tag[1]}>" not in said:  # else what is in it there is a document
            shapes.append((f"<{tag[1]}>", f"</{tag[1]}>", tag[2] or "", True))
    for line in [*_QUOTED.finditer(said), *_LINE.finditer(said)]:
        opens = (line["open"] or line["loud"]).strip(" *")
        place = line["place"] or ""
        named = opens.strip(" :=：,{") and (opens[-1] in ":=：#" or len(opens.split()) > 1) and opens != "JSON:"
        if named and not place.startswith(('{"', "{'")):
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


def _placeholders(inside: Iterable[str]) -> frozenset[str]:
    """Return the one word that stands for an answer, if it is the only one."""
    shown = {folded(one) for one in inside if one.strip()}
    words = {one for one in shown if len(one.strip()) > 1 and not one.strip().isnumeric()}
    return frozenset(words) if len(shown) == 1 else frozenset()


_LISTED = re.compile(
    r"(?:^|\n|(?<=\s))[ \t>*-]*\(?(?P<label>[A-Ja-j]|\d)[).:、．](?!\d)[ \t]*(?P<text>[^\n]{1,200}?)"
    r"(?=[ \t]+\(?(?:[B-Jb-j]|\d)[).:、．][ \t]*\S|\n|$)"
)
_LETTERED = re.compile(r"^[ \t>*(]*([^\W\d_A-Za-z]|[①-⑨])[ \t]?[).:、．。\u3000][ \t]*([^\n]{1,200})$", re.M)
"""The same with letters of other scripts."""
_IN_QUOTES = re.compile(
    r"[\"“‘`«「『]([^\"“”‘’`«»「」『』\n]{1,30})[\"”’`»」』](?!\s*:)|(?<!\w)'([^'\n]{1,30})'(?![A-Za-z:])|\[\[([^\[\]\n]{1,20})\]\]"
)
_BETWEEN = re.compile(r"\s*[,;、，；]\s*|\s*\|\s*|(?<=\w)/(?=\w)| / ")
_ENDS = re.compile(r"[:：;?!？。！()（）\[\]{}\n]|\.(?!\d)")
_LETTER = re.compile(r"(?<![\w'’\\])[(（]?([A-J]|\d|[^\x00-\x7f])[)）]?(?![\w'’]|\.\d)")
_NO_LETTER = re.compile(
    r" (?!is (?:the|correct|right|best)\b|because|since|as\b)[^\W\d_A-Z]"
    r"|\W{0,3}(?:is|was)? ?(?:not|incorrect|wrong|impossible|false|ruled|would|can't|cannot)\b"
)
"""What follows an article, and what denies an option."""
_AROUND = " \t\"'“”‘’`*[](){}<>.:;,"  # characters around a label
_PAUSE = re.compile(r"[,.!:;，。、！：؛،।\n]|\s[–—-]\s|[–—]")
_MOST_WORDS, _AFTER = 3, 3  # of a label, and after the last one


def lettered(asked: str, numbered: bool = True) -> dict[str, str]:
    """Return options by their letters or numbers: "A) Mercury"."""
    listed: dict[str, str] = {}
    for found in _LISTED.finditer(asked[:8000]):
        label = found["label"].upper()
        if label.isdigit() and not numbered:
            continue
        if label in "A1":
            listed = {}
        if label == ("123456789" if "1" in listed or label == "1" else "ABCDEFGHIJ")[len(listed) : len(listed) + 1]:
            listed[label] = found["text"].strip(" .*;,")
    listed = listed if len(listed) > 1 else {one: text.strip() for one, text in _LETTERED.findall(asked[:8000])}
    tasks = any(text.endswith(("?", "？")) for text in listed.values())  # a list of questions leaves no choice
    return listed if len(listed) > 1 and not tasks else {}


def labels(told: str) -> list[str]:
    """Return the labels that instructions list."""
    for sentence in sentences(told):
        quoted = [(one or two or three).strip(" .:") for one, two, three in _IN_QUOTES.findall(sentence)]
        quoted = [one for one in dict.fromkeys(quoted) if 0 < len(folded(one).split()) <= _MOST_WORDS]
        listed = quoted if len(quoted) > 1 else _enumerated(unmarked(sentence))
        if len(listed) > 1:
            return listed
    return []


def offered(sentence: str) -> list[str]:
    """Return labels that are quoted with "or" between them, or parted by strokes.

    >>> offered("Dites si c'est « vrai », « faux » ou « non dit »."), offered("TRUE / FALSE / NOT GIVEN")
    (['vrai', 'faux', 'non dit'], ['TRUE', 'FALSE', 'NOT GIVEN'])
    """
    quoted = list(_IN_QUOTES.finditer(sentence))
    between = [sentence[one.end() : other.start()].strip(" ,、，/|") for one, other in pairwise(quoted)]
    if any(between) and all(not one or WORDS["or"].are(one) for one in between):
        return labels(sentence)
    pieces = [one.strip(" .") for one in re.split(r" / | \| ", sentence)]
    return [*dict.fromkeys(pieces)] if len(pieces) > 1 and all(len(one.split()) <= 2 for one in pieces) else []


_BLOCK = re.compile(r"[:：]\s*\n((?:[^\n]+(?:\n|$)){2,12})")
_DEFINED = re.compile(
    r"[ \t>*•-]*[\"'`*“«]*([^\n:：–—<\[{(]{2,40}?)[\"'`*”»]*\s?(?:(?:[:：–—]| - )[ \t]*[^<\[{\s].*)?$"
)


def defined(told: str, bulleted: bool = False) -> list[str]:
    """Return labels that are defined line by line after a colon, or bulleted.

    >>> defined("Choose one:\\n\\nfast - in a day\\nslow - in a week\\nother\\n\\nNote: be kind.")
    ['fast', 'slow', 'other']
    """
    for block in _BLOCK.findall(told):
        lines = [line for line in block.strip("\n").split("\n") if not bulleted or line.lstrip()[:1] in "-*•"]
        found = [_DEFINED.match(line.replace(" - ", " – ")) for line in lines]
        names = [line[1].strip() for line in found if line and len(line[1].split()) <= _MOST_WORDS]
        told_of = sum(line is not None and len(line[0].strip()) > len(line[1]) + 6 for line in found)
        if 1 < len(names) == len(lines) and (bulleted or told_of > max(len(lines) - 2, 1)):
            return [*dict.fromkeys(names)]
    return []


def _enumerated(sentence: str) -> list[str]:
    """Return short things in a list with "or", after a colon, or after "only"."""
    joined, chooses = sentence, WORDS["only"].occur_in(folded(sentence)) or ":" in sentence or "：" in sentence
    for table, mark in (("or", "|"), ("and", ",")):
        for entry in WORDS[table].entries:
            joined = re.sub(re.escape(entry), mark, joined, flags=re.IGNORECASE)
    pieces = [one for one in _BETWEEN.split(joined) if one.strip()]
    if len(pieces) < 2 or not (chooses or "|" in joined or "/" in joined):
        return []
    inside = [one.strip(_AROUND) for one in pieces[1:-1] if len(one.split()) <= _MOST_WORDS]
    head, tail = _ENDS.split(pieces[-1].lstrip(" ([{"))[0], _ENDS.split(pieces[0])[-1]
    most = max((len(one.split()) for one in inside), default=1)
    after = max(len(head.split()) - most, 0)  # in many languages the verb follows
    last = head if len(head.split()) <= max(most, 2) else " ".join(head.split()[:most]) if after <= _AFTER else ""
    first = "" if WORDS["which"].open(folded(tail)) else " ".join(tail.split()[-min(most, len(last.split()) or 1) :])
    if is_unspaced(last):
        length = max(map(len, inside), default=len(last))
        first, last = tail[-length:], last[:length]
    bare = [one.strip(_AROUND) for one in (first, *inside, last)]
    return [one for one in dict.fromkeys(bare) if folded(one).strip()]


def chosen_letter(text: str, options: Mapping[str, str]) -> str | None:
    """Return the option that a text names, by its letter or else by its text."""
    bare = unmarked(text)
    alone = bare.strip(".()").upper()
    meant = [label for label, meaning in options.items() if folded(meaning) == folded(bare)]
    if meant or alone in options:
        return meant[0] if meant else alone
    for part in [*in_bold(text)[-1:], *sentences(bare)[:-4:-1]]:
        letters = [one[1] for one in _LETTER.finditer(part) if one[1] in options and _is_letter(part, one)]
        if len(letters) == len(folded(part).split()) > 1:  # several, or an order
            return ", ".join(letters)
        named = [label for label, meaning in options.items() if within(folded(meaning), folded(part))]
        if letters or len(named) == 1:
            return (letters or named)[0]
    return None


def _is_letter(text: str, letter: re.Match[str]) -> bool:
    """Whether a letter is an option, and neither a word nor denied."""
    after = text[letter.end() :]
    no = _NO_LETTER.match(after)
    is_word = letter[0] in "AI" or not letter[0].isascii()
    return not is_mark(after[:1]) and (no is None or (not is_word and no[0][:1] == " " and len(no[0]) == 2))


def chosen(text: str, names: Collection[str]) -> str | None:
    """Return the label that a text is, marks, begins with, or has in its last sentence."""
    said = sentences(unmarked(text))
    for part in [unmarked(text), *in_bold(text)[-1:], *said[-1:], *said[:1]]:
        rest, found = folded(part), []
        for name in sorted(names, key=len, reverse=True):
            denied = any(f"{no}{folded(name).lstrip()}" in rest for no in WORDS["no"].entries)
            if within(folded(name), rest) and not denied:
                found.append(name)
                rest = rest.replace(folded(name).strip() if is_unspaced(name) else folded(name), " ")
        if len(found) == 1:
            return found[0]
        first = next((name for name in found if folded(part).startswith(folded(name))), None)
        if first and (len(said) > 1 or len(names) == 2):
            return first
    return None


def verdict(text: str) -> str | None:
    """Return yes or no, where a text or its last sentence begins with it."""
    said = sentences(unmarked(text))
    for sentence in said[:1] + said[-1:]:
        word = folded(_PAUSE.split(sentence, maxsplit=1)[0].strip())
        if found := [answer for answer in ("yes", "no") if WORDS[answer].are(word)]:
            return found[0]
    return None
