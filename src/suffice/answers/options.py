"""The one of the options that a request names to which a text comes down."""

import re
from collections.abc import Iterator

from suffice.answers.prose import in_bold, sentences, unmarked
from suffice.answers.requests import Question
from suffice.answers.spelling import as_option, fold
from suffice.answers.stated import said_letter


def option_at_start(text: str, question: Question) -> str | None:
    """The option that a text begins with."""
    mentions = list(_mentions(text, question))
    return mentions[0][1] if mentions and not re.search(r"\w", text[: mentions[0][0]]) else None


def _mentions(text: str, question: Question) -> Iterator[tuple[int, str]]:
    """Where options are mentioned, in order, the longer one where two overlap; not those that are denied."""
    folded = re.sub(r"[_-]", " ", text.casefold())
    named = {fold(name): label for label, meaning in (question.options or {}).items() for name in (meaning, label)}
    names = sorted((name for name in named if len(name) > 1), key=len, reverse=True)
    if not names:
        return
    pattern = "|".join(re.sub(r"\\ ", r"\\s+", re.escape(name)) for name in names)
    for found in re.finditer(rf"(?<![\w.])(?:{pattern})(?!\w|\.\d)", folded):
        before = folded[max(0, found.start() - 16) : found.start()]
        if not re.search(
            r"\b(?:not|n't|neither|nor|rather than|than|no|isn.t|over|instead of|versus|"
            r"vs\.?)\W+(?:an? |the )?$",
            before,
        ):
            yield found.start(), named[re.sub(r"\s+", " ", found[0])]


def option(text: str, question: Question) -> str | None:
    """The one option that a text comes down to: alone, in bold, in its first sentence or in its last."""
    if not question.options:
        return None
    bracketed = [label for label in re.findall(r"\[\[([^\[\]\n]{1,20})\]\]", text) if label in question.options]
    if bracketed:
        return str(bracketed[-1])
    for mark in "=:":
        if mark in text and (last := as_option(text.rpartition(mark)[2], question)):
            return last
    if question.want == "letter":
        alone = re.match(r"[\s*(]*([A-J])(?:[).:*]*\s*(?:\n|$)|[).:]+\s[^\n]{1,120}(?:\n|$))", text)
        if alone and alone[1] in question.options:
            return alone[1]
        letter = said_letter(text)
        if letter and (letter[0] or len(text) < 1500) and letter[2] in question.options:
            return letter[2]
    said = sentences(text)
    if not said:
        return None
    label = re.match(r"[^:.\n]{1,40}:\s*(?=\S)", unmarked(said[0]))
    if whole := as_option(text, question) or as_option(unmarked(said[0])[label.end() if label else 0 :], question):
        return whole
    first, last = unmarked(said[0]), unmarked(said[-1])
    bold = {option for span in in_bold(text) for _, option in _mentions(span, question)}
    if len(bold) == 1:
        return bold.pop()
    for sentence in (first, last, *(_OTHER.split(one)[0] for one in (first, last))):
        mentioned = [option for _, option in _mentions(sentence, question)]
        if len(set(mentioned)) == 1:
            return mentioned[0]
    if start := option_at_start(first, question):
        return start
    for sentence in (last, first):
        fits = [
            option for place, option in _mentions(sentence, question) if _is_what_was_asked(sentence[place:], question)
        ]
        if len(set(fits)) == 1:
            return fits[0]
    for sentence in (last, first):
        after = re.search(r"(?:\b(?:is|as|be|was|are)\b|:|→)\s*(?:an? |the )?", sentence)
        if after and (start := option_at_start(sentence[after.end() :], question)):
            return start
    return None


def _is_what_was_asked(text: str, question: Question) -> bool:
    """Whether an option is said to be what the question asks about: "9.9 is larger"."""
    said = re.match(r"\S+ (?:is|was|are|has) (?:the )?(\w+)", text)
    return said is not None and said[1].lower() in question.words


_OTHER = re.compile(r"\b(?:rather than|instead of|as opposed to|than|over|versus|vs)\b")
