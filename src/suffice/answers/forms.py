"""The form that a request gives its answer: slots to fill in, or a closed set to choose from.

A slot is a pair of delimiters with a placeholder between them, by shape alone, whatever the language: `[[rating]]`,
`<grade>…</grade>`, `Answer: X`, `FINAL:`, `VERDICT=PASS`, `#### `, or a quoted or fenced line with a gap.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from suffice.answers.prose import in_bold, sentences, unmarked, without_asides
from suffice.answers.words import ANSWER, NO, ONLY, OR, VERDICT, YES, folded, is_mark, is_unspaced, within

_PLACE = (  # what stands for something to be filled in
    r"\w+(?:\|\w+)+|<[^<>\n]{1,60}>|\[[^\[\]\n]{1,60}\]|\{[^{}\n;]{0,60}\}|\(\w[^()\n]{0,60}\)|\.{3}|…|_{2,}|\b[XYNZ]\b"
)
_TAKEN = "\0"  # stands for a place that was found
_PAIR = re.compile(r"(?P<open>\[\[|<<|【)(?P<place>[^\[\]<>【】\n]{0,60})(?P<close>\]\]|>>|】)")
_TAGS = re.compile(
    r"(?P<open><(?P<tag>[^\W\d][\w-]{0,30})>)\s*(?P<place>\.{3}|[^.!?。！？।\n]{0,60}?)\s*(?P<close></(?P=tag)>)"
)
_QUOTED = re.compile(
    r"(?:(?<![A-Za-z0-9.!?])[\"`]|[“„«「『]|(?P<single>(?<!\w)'|‘))[ \t]*"
    r"(?P<open>(?![,;.:)])[^\"“”'‘’`«»「」『』\[\]{}\n\0]{2,40}?)\s*"
    rf"(?P<place>{_PLACE}|(?<=[:=：])\s*[^\"“”`«»「」『』\n:=：%;\\\0]{{0,30}}?)\s*[^\w\"”'’`»」』\n\0]{{0,3}}"
    r"(?(single)['’]|[\"”“`»」』])"
)
_LOUD = re.compile(
    r"(?<![\w\"])(?P<open>[A-Z][A-Z_]{2,20}(?: [A-Z_]{3,20})?\s?[:=]|#{4}|[^\W\d_]{2,20}=(?=[XYNZ]\b|<))"
    rf"(?: ?(?P<place>{_PLACE})|(?=\s|\w|$|[(\"'`.,])(?!\s?\0))"
)
_LINE = re.compile(
    r"^[ \t>*•-]*(?P<open>[^\W\d_][^\n:=：<>()\[\]{}\"“”„‘’'`«»「」.?!。？！\0]{0,30}?\s*[:：])[ \t*]*"
    rf"(?P<place>{_PLACE})[^\w\n]*$",
    re.MULTILINE,
)
_TAG = re.compile(r"(?P<open><(?P<tag>[^\W\d][\w-]{0,30})>)(?![\s\S]*</(?P=tag)>)")
_HEADED = re.compile(r"\[\[ ## (\w+) ## \]\]")  # as of DSPy
_LONGEST = 200


@dataclass(frozen=True)
class Slot:
    """Where an answer goes: between two delimiters, or up to the end of its line."""

    open: str
    close: str = ""
    placeholders: frozenset[str] = frozenset()  # what the request has there, which is no answer

    @property
    def is_answer(self) -> bool:
        """Whether it, or what stands in it, is called what answers are called."""
        names = (folded(self.open), *self.placeholders)
        return self.open == "####" or any(map(ANSWER.occur_in, names))

    def read(self, text: str) -> str | None:
        """Return what the last such place holds; a mere placeholder is an empty text."""
        found: list[str] = self._pattern.findall(text)
        said = [unmarked(_TAGS.sub(r"\g<place>", one)).strip("<> \n") for one in reversed(found)]
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


def slots_in(said: str) -> list[Slot]:
    """Return the places that are shown for something to be filled in; of two, that of the answer."""
    found: dict[tuple[str, str], list[str]] = {}

    def take(shown: re.Match[str]) -> str:
        groups = shown.groupdict()
        close = groups.get("close") or (f"</{groups['tag']}>" if "tag" in groups else "")
        ends, place = (shown["open"].strip(" *"), close), groups.get("place") or ""
        if not _is_slot(shown, ends[0], place):
            return shown[0]
        is_example = shown.re is _LOUD and ends[0][-1] == ":" and shown.string[shown.end() :].lstrip(" ")[:1].isalnum()
        if ends in found or not is_example:
            found.setdefault(ends, []).append(place)
        return _TAKEN

    if fields := [one for one in _HEADED.findall(said) if one != "completed"]:
        heading = Slot(f"[[ ## {fields[-1]} ## ]]", "[[ ##")
        return [heading] if heading.is_answer else [heading, heading]
    for shape in (_PAIR, _TAGS, _QUOTED, _LOUD, _LINE, _TAG):  # of what one takes, the next see nothing
        said = shape.sub(take, said)
    slots = [Slot(*ends, _placeholders(shown)) for ends, shown in found.items()]
    return slots[-1:] if len(slots) == 2 and slots[-1].is_answer else slots  # the other has the grounds


def _is_slot(shown: re.Match[str], opens: str, place: str) -> bool:
    """Whether what looks like a label is one."""
    shape = shown.re
    if (
        shape is _TAGS
        and not ANSWER.occur_in(folded(opens))
        and (place.isnumeric() or len(place.split()) > _MOST_WORDS)
    ):
        return False  # material in tags
    if shape in (_PAIR, _TAGS, _TAG):
        is_alone = len({*re.findall(r"<\w[^<>]*>", shown.string)}) == 1
        return shape is not _TAG or (is_alone and ANSWER.occur_in(folded(opens)))
    if shape is _LOUD and not place and opens != "####" and not ANSWER.occur_in(folded(opens)):
        return False
    if place in ("...", "…") and not ANSWER.occur_in(folded(opens)):
        return False
    is_label = opens[-1] in ":=：#" or (len(opens.split()) > 1 and place[:1] != "(")
    return is_label and bool(opens.strip(" :=：,{")) and opens != "JSON:" and not place.startswith(('{"', "{'"))


def _placeholders(inside: Iterable[str]) -> frozenset[str]:
    """Return the one word that stands for an answer, if it is the only one."""
    shown = {folded(one) for one in inside if one.strip()}
    words = {one for one in shown if (len(one.strip()) > 1 or one.strip() in "nxyz") and not one.strip().isnumeric()}
    return frozenset(words) if len(shown) == 1 else frozenset()


_LISTED = re.compile(
    r"(?:^|\n|(?<=\s))[ \t>*-]*\(?(?P<label>[A-Ta-t])[).:、．](?!\d)[ \t]*(?P<text>[^\n]{1,200}?)"
    r"(?=[ \t]+\(?[B-Tb-t][).:、．][ \t]*\S|\n|$)"
)
_LETTERED = re.compile(r"^[ \t>*(]*([^\W\d_A-Za-z]|[①-⑨])[ \t]?[).:、．。\u3000][ \t]*([^\n]{1,200})$", re.M)
_IN_QUOTES = re.compile(
    r"[\"“‘`«「『]([^\"“”‘’`«»「」『』\n]{1,30})[\"”’`»」』](?!\s*:)|(?<!\w)'([^'\n]{1,30})'(?![A-Za-z:])|\[\[([^\[\]\n]{1,20})\]\]"
)
_BETWEEN = re.compile(r"\s*[,;、，；]\s*|\s*\|\s*|(?<=\w)/(?=\w)| / ")
_LETTER = re.compile(
    r"(?<![\w'’\\])[(（]?"
    r"([B-HJ-T]|[AI](?! (?!is (?:the|right)|because|since|as\b)[a-z])|\d|[^\x00-\x7f](?! [^\W\d_]))[)）]?"
    r"(?![\w'’]|\.\d| is (?:not|wrong|incorrect))"
)
"""A letter that is neither a word nor denied."""
_AROUND = " \t\"'“”‘’`*[](){}<>.:;,"  # characters around a label
_MOST_WORDS, _MOST_LABELS = 3, 20  # of a label, and labels
_MOST_ORDER = 25  # words of an order with labels


def lettered(asked: str, at_end: bool = False) -> dict[str, str]:
    """Return options by their letters: "A) Mercury"; `at_end` only those that end the text."""
    lists = [listed := dict[str, str]()]
    for found in _LISTED.finditer(asked[:8000]):
        label = found["label"].upper()
        if label == "A":  # a list may come after another, or before an "A:" left open
            lists.append(listed := {})
        if label == "ABCDEFGHIJKLMNOPQRST"[len(listed) : len(listed) + 1]:
            listed[label] = found["text"].strip(" .*;,")
    listed = next((one for one in reversed(lists) if len(one) > 1), dict[str, str]()) or {
        one: text.strip() for one, text in _LETTERED.findall(asked[:8000])
    }
    tasks = any(text.endswith(("?", "？")) for text in listed.values())  # a list of questions leaves no choice
    is_inside = at_end and not asked.rstrip(" .*;,").endswith(tuple(listed.values()))
    return listed if len(listed) > 1 + at_end and not tasks and not is_inside else {}


_EDIT = re.compile(
    r"^(?:<{5,}|>{5,}|@@ |diff --git|--- a/|\+\+\+ b/|Thought:|Action:)"
    r"|SEARCH/REPLACE|</?tool_call>|<function=|\bdiff\b|[\"“](?:SOURCES|thoughts?|args)[\"”]"
    r"|\bthoughts?\b[^\n]{0,80}\bactions?\b|\bactions?\b[^\n]{0,80}\bthoughts?\b",
    re.M,
)


_BLANKS = re.compile(
    r"(?:^(?:[^\n:：]{2,40}[:：]|[ \t]*[【\[][^\n]{1,40}[】\]]|#{1,4} [^\n]{1,40})[ \t]*(?:\n|\Z)){3}", re.M
)


_GAPS = re.compile(r"^[^\n:：]{1,30}[:：][ \t]*(?:…+|\.{3})[ \t]*$", re.M)


def is_form(told: str, asked: str) -> bool:
    """Whether it shows an edit of code, a call of a tool, the steps of an agent, or several labels left open."""
    both = f"{told}\n{asked}"
    return any(shape.search(both) for shape in (_EDIT, _BLANKS)) or len(_GAPS.findall(both)) > 2


def labels_in(frame: Sequence[str]) -> list[str]:
    """Return the labels to choose from: quoted, between strokes, in brackets, or after a colon."""
    for sentence in frame:
        shapes = (_between_quotes, _between_strokes, _in_brackets, _enumerated)
        if listed := next(filter(None, (shape(sentence) for shape in shapes)), None):
            return listed
    return []


def _between_quotes(sentence: str) -> list[str]:
    """Return labels that are quoted with "or", a comma or a stroke between them."""
    quoted = list(_IN_QUOTES.finditer(sentence))
    gaps = [sentence[one.end() : other.start()] for one, other in pairwise(quoted)]
    between = [one.strip(" ,、，/|") for one in gaps]
    names = [next(filter(None, one.groups())).strip(" .:") for one in quoted]
    joined = (
        len(quoted) > 1
        and all(gaps)
        and not sentence[: quoted[0].start()].endswith("{")
        and all(not one or OR.are(folded(one)) for one in between)
    )
    return _labels(names) if joined else []


_NAME = r"[^\W\d_][^\s/|()\[\]{}<>.,;:!?\"]*"
_STROKES = re.compile(
    rf"(?<![\w/.|])({_NAME}(?: {_NAME})?(?:(?: / | ?\| ?){_NAME}(?: {_NAME})?)+|{_NAME}(?:/{_NAME})+)(?!\.?[\w/(|])"
)


def _between_strokes(sentence: str) -> list[str]:
    """Return labels between strokes: three, or two that are all there is in brackets, after a colon, or yes and no."""
    for found in _STROKES.finditer(sentence):
        names = _labels(re.split(r" ?/ ?|\|", found[1]))
        before, after = sentence[: found.start()].rstrip(), sentence[found.end() :].strip()
        said = folded(sentence)
        asks = "," not in sentence or ANSWER.occur_in(said) or ONLY.occur_in(said) or sentence.endswith("?")
        is_apart = asks and re.search(r"(?:^|\W)[(\[{<]$|[:：]$", before) and after[:1] in ")]}>.。" and len(after) < 3
        apart = is_apart or (len(names) > 2 and not before and after in "?.")
        if len(names) > 1 and (apart or _is_verdict(names)):
            return names
    return []


_BRACKETED = re.compile(r"(?<![\[{])(?<![\[{,]\s)[\[{]([^\[\](){}:\n]{3,200})[\]}](?!\s*[,\]}])")


def _in_brackets(sentence: str) -> list[str]:
    """Return three labels or more in square or curly brackets."""
    for found in _BRACKETED.finditer(sentence):
        names = _labels(_BETWEEN.split(_with_strokes(found[1])))
        if len(names) > 2:
            return names
    return []


_NO_OR = {" of ": " the ", " o ": " da "}  # Dutch or English; Spanish or Portuguese


def _with_strokes(text: str) -> str:
    said = folded(text)
    for entry in sorted(OR.entries, key=len, reverse=True):
        if _NO_OR.get(entry, "\n") not in said:
            text = re.sub(re.escape(entry), " | ", text, flags=re.IGNORECASE)
    return text


def _enumerated(sentence: str) -> list[str]:
    """Return labels after a colon and what answers are called, or with "or" at the end of a short order."""
    bare = _with_strokes(without_asides(unmarked(sentence)))
    head, colon, listed = bare.replace("：", ":").rpartition(":")
    said = folded(head)
    if colon and (ANSWER.occur_in(said) or ONLY.occur_in(said) or (listed.isupper() and " | " in listed)):
        names = _labels(_BETWEEN.split(listed.strip(" .。")))
        is_list = len(names) > 2 and not ONLY.occur_in(said)
        if is_list or (names and all(len(one.split()) == 1 for one in names)):
            return names
    *before, last = _BETWEEN.split((head or bare).rstrip(" .。!！?？"))
    if before and len(before) < 4 and len(bare.split()) <= _MOST_ORDER:
        first = before[0].split()[-1:] if not is_unspaced(last) else [before[0][-len(last) :]]
        names = _labels([*first, *before[1:], last.split()[0] if last.split() else ""])
        loud = [one for one in re.findall(r"\w+", bare) if one.isupper() and len(one) > 1]
        ends = len(names) > 2 and " | " in (head or bare) and len(last.split()) == 1
        is_asked = ends and ANSWER.occur_in(folded(before[0]))
        if is_asked or _is_verdict(names) or _is_verdict(names[:2]) or (names and names == loud and " | " in bare):
            return names
    return []


def _is_verdict(names: Sequence[str]) -> bool:
    return len(names) == 2 and (
        (YES.are(folded(names[0])) and NO.are(folded(names[1]))) or all(VERDICT.are(folded(one)) for one in names)
    )


def _labels(names: Iterable[str]) -> list[str]:
    """Return names that are short and several, else none."""
    bare = [one.strip(_AROUND) for one in names]
    kept = [
        one for one in dict.fromkeys(bare) if folded(one).strip() and "=" not in one and not any(map(str.isdigit, one))
    ]
    return kept if 1 < len(kept) <= _MOST_LABELS and all(len(one.split()) <= _MOST_WORDS for one in kept) else []


def chosen_letter(text: str, options: Mapping[str, str]) -> str | None:
    """Return the option that a text names, by its letter or else by its text."""
    bare = unmarked(text)
    alone = bare.strip(".()").upper()
    meant = [label for label, meaning in options.items() if folded(meaning) == folded(bare)]
    if meant or alone in options:
        return meant[0] if meant else alone
    for part in [*in_bold(text)[-1:], *sentences(bare)[:-4:-1]]:
        letters = [one[1] for one in _LETTER.finditer(part) if one[1] in options and not is_mark(part[one.end() :][:1])]
        if len(letters) == len(folded(part).split()) > 1:  # several, or an order
            return ", ".join(letters)
        named = [label for label, meaning in options.items() if within(folded(meaning), folded(part))]
        if letters or len(named) == 1:
            return (letters or named)[0]
    return None


def chosen(text: str, names: Collection[str]) -> str | None:
    """Return the label that a text is, marks, begins with, or has in its last sentence."""
    said = sentences(unmarked(text))
    for part in [unmarked(text), *in_bold(text)[-1:], *said[-1:], *said[:1]]:
        rest, found = folded(part), []
        for name in sorted(names, key=len, reverse=True):
            denied = any(f"{no}{folded(name).lstrip()}" in rest for no in NO.entries)
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
        first = folded(sentence).split()[:1]
        if found := [answer for answer, words in (("yes", YES), ("no", NO)) if any(map(words.are, first))]:
            return found[0]
    return None
