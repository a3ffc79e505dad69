"""A closed set in the request: what it leaves to choose from, and which of that a response has chosen."""

import re
from collections.abc import Mapping
from itertools import pairwise

from suffice.answers.prose import in_bold, sentences, unmarked
from suffice.answers.words import AND, NO, ONLY, OR, WHICH, YES, folded, is_mark, is_unspaced, within

Options = Mapping[str, str]
"""Each label with what it stands for."""

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
_PAUSE = re.compile(r"[,.!:;，。、！：؛،।\n]|\s[–—-]\s|[–—]")
_MOST_WORDS = 3
_AFTER = 3
"""Words of a label, and of what may follow the last one in its sentence."""


def lettered(asked: str, numbered: bool = True) -> dict[str, str]:
    """The options with letters or numbers, each with its text: "A) Mercury"."""
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


def labels(told: str) -> dict[str, str]:
    """The labels that instructions list, each as it is written there.

    >>> list(labels("Answer with bug, feature request or question.")), list(labels('Say "safe" or "unsafe".'))
    (['bug', 'feature request', 'question'], ['safe', 'unsafe'])
    """
    for sentence in sentences(told):
        quoted = [(one or two or three).strip(" .:") for one, two, three in _IN_QUOTES.findall(sentence)]
        quoted = [one for one in dict.fromkeys(quoted) if 0 < len(folded(one).split()) <= _MOST_WORDS]
        listed = quoted if len(quoted) > 1 else _enumerated(unmarked(sentence))
        if len(listed) > 1:
            return {one: one for one in listed}
    return {}


def offered(sentence: str) -> dict[str, str]:
    """The labels that a sentence shows to be all that there is, in any language: in quotes with "or" between them, or
    with strokes between them and nothing besides.

    >>> list(offered("Dites si c'est « vrai », « faux » ou « non dit ».")), list(offered("TRUE / FALSE / NOT GIVEN"))
    (['vrai', 'faux', 'non dit'], ['TRUE', 'FALSE', 'NOT GIVEN'])
    """
    quoted = list(_IN_QUOTES.finditer(sentence))
    between = [sentence[one.end() : other.start()].strip(" ,、，/|") for one, other in pairwise(quoted)]
    if any(between) and all(not one or OR.are(one) for one in between):
        return labels(sentence)
    pieces = [one.strip(" .") for one in re.split(r" / | \| ", sentence)]
    return {one: one for one in pieces} if len(pieces) > 1 and all(len(one.split()) <= 2 for one in pieces) else {}


_BLOCK = re.compile(r"[:：]\s*\n((?:[^\n]+(?:\n|$)){2,12})")
_DEFINED = re.compile(
    r"[ \t>*•-]*[\"'`*“«]*([^\n:：–—<\[{(]{2,40}?)[\"'`*”»]*\s?(?:(?:[:：–—]| - )[ \t]*[^<\[{\s].*)?$"
)


def defined(told: str, bulleted: bool = False) -> dict[str, str]:
    """The labels that are told line by line after a colon: nearly each with what it means, or else each with a bullet.

    >>> list(defined("Choose one:\\n\\nfast - in a day\\nslow - in a week\\nother\\n\\nNote: be kind."))
    ['fast', 'slow', 'other']
    """
    for block in _BLOCK.findall(told):
        lines = [line for line in block.strip("\n").split("\n") if not bulleted or line.lstrip()[:1] in "-*•"]
        found = [_DEFINED.match(line.replace(" - ", " – ")) for line in lines]
        names = [line[1].strip() for line in found if line and len(line[1].split()) <= _MOST_WORDS]
        told_of = sum(line is not None and len(line[0].strip()) > len(line[1]) + 6 for line in found)
        if 1 < len(names) == len(lines) and (bulleted or told_of > max(len(lines) - 2, 1)):
            return {name: name for name in names}
    return {}


def _enumerated(sentence: str) -> list[str]:
    """The short things that a sentence lists: with an "or" before the last, after a colon, or as all that there is."""
    joined, chooses = sentence, ONLY.occur_in(folded(sentence)) or ":" in sentence or "：" in sentence
    for table in (OR, AND):
        for entry in table.entries:
            if entry in joined.casefold():
                joined = re.sub(re.escape(entry), "|" if table is OR else ",", joined, flags=re.IGNORECASE)
    pieces = [one for one in _BETWEEN.split(joined) if one.strip()]
    if len(pieces) < 2 or not (chooses or "|" in joined or "/" in joined):
        return []
    inside = [_bare(one) for one in pieces[1:-1] if len(one.split()) <= _MOST_WORDS]
    head, tail = _ENDS.split(pieces[-1].lstrip(" ([{"))[0], _ENDS.split(pieces[0])[-1]
    most = max((len(one.split()) for one in inside), default=1)
    after = max(len(head.split()) - most, 0)  # in many languages the verb follows
    last = head if len(head.split()) <= max(most, 2) else " ".join(head.split()[:most]) if after <= _AFTER else ""
    first = "" if WHICH.open(folded(tail)) else " ".join(tail.split()[-min(most, len(last.split()) or 1) :])
    if is_unspaced(last):
        length = max(map(len, inside), default=len(last))
        first, last = tail[-length:], last[:length]
    return [one for one in dict.fromkeys([_bare(first), *inside, _bare(last)]) if folded(one).strip()]


def _bare(label: str) -> str:
    return label.strip(" \t\"'“”‘’`*[](){}<>.:;,")


def chosen_letter(text: str, options: Options) -> str | None:
    """The option that a text comes to, by its letter or else by its text.

    >>> planets = {"A": "Earth", "B": "Saturn"}
    >>> chosen_letter("Earth has 1 moon. So it is (B).", planets), chosen_letter("Saturn", planets)
    ('B', 'B')
    """
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
    """Whether a letter is an option, and neither a word of its own, or a piece of one, nor denied."""
    after = text[letter.end() :]
    no = _NO_LETTER.match(after)
    is_word = letter[0] in "AI" or not letter[0].isascii()
    return not is_mark(after[:1]) and (no is None or (not is_word and no[0][:1] == " " and len(no[0]) == 2))


def chosen(text: str, options: Options) -> str | None:
    """The one of some labels that a text is, begins with, marks, or has alone in its last sentence or its first.

    >>> chosen("This is clearly **spam**.", {"spam": "spam", "not spam": "not spam"})
    'spam'
    """
    names = sorted(options, key=len, reverse=True)
    said = sentences(unmarked(text))
    for part in [unmarked(text), *in_bold(text)[-1:], *said[-1:], *said[:1]]:
        rest, found = folded(part), []
        for name in names:
            if within(folded(name), rest) and not _is_denied(folded(name), rest):
                found.append(name)
                rest = rest.replace(folded(name).strip() if is_unspaced(name) else folded(name), " ")
        if len(found) == 1:
            return found[0]
        first = next((name for name in found if folded(part).startswith(folded(name))), None)
        if first and (len(said) > 1 or len(options) == 2):
            return first
    return None


def _is_denied(name: str, text: str) -> bool:
    return any(f"{no}{name.lstrip()}" in text for no in NO.entries)


def verdict(text: str) -> str | None:
    """Yes or no, where a text begins with it, or its last sentence does.

    >>> verdict("Ja, laut § 5."), verdict("いいえ、違います。"), verdict("Nobody knows.")
    ('yes', 'no', None)
    """
    said = sentences(unmarked(text))
    for sentence in said[:1] + said[-1:]:
        first = _PAUSE.split(sentence, maxsplit=1)[0].strip()
        word = folded(first)
        if any(table.are(word) for table in (YES, NO)):
            return "yes" if YES.are(word) else "no"
    return None
