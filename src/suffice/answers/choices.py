"""What a request leaves to choose from: options with letters or numbers, labels that it lists, alternatives."""

import re

from suffice.answers import phrases

_LISTED = re.compile(
    r"(?:^|\n|[ \t]{2,})[ \t>*-]*\(?([A-J])[).:][ \t]+([^\n]{1,200}?)"
    r"(?=[ \t]+\(?[B-J]\)[ \t]|[ \t]{2,}\(?[B-J][.:]|\n|$)"
    r"|(?<=\s)\(?([A-J])\)[ \t]+([^\n]{1,200}?)(?=[ \t]+\(?[B-J]\)[ \t]|\n|$)"
)


def letters(asked: str) -> dict[str, str]:
    """The options with letters, each with its text: "A) Mercury"."""
    listed: dict[str, str] = {}
    for found in _LISTED.finditer(asked):
        letter, text = found[1] or found[3], found[2] or found[4]
        if letter == chr(ord("A") + len(listed)):
            listed[letter] = text.strip(" .*")
        elif letter == "A":
            listed = {letter: text.strip(" .*")}
    return listed if len(listed) > 1 else _numbered(asked) or _small(asked)


_SMALL = re.compile(r"(?<=\s)\(?([a-j])\)[ \t]+([^\n]{1,200}?)(?=[ \t]+\(?[b-j]\)[ \t]|\n|$)")


def _small(asked: str) -> dict[str, str]:
    """The options with small letters; their answers are read as capitals."""
    listed = [(letter.upper(), text.strip(" .*")) for letter, text in _SMALL.findall(asked[:4000])]
    in_order = [letter for letter, _ in listed] == [chr(ord("A") + place) for place in range(len(listed))]
    tasks = any(text.endswith("?") for _, text in listed)
    return dict(listed) if len(listed) > 1 and in_order and "?" in asked and not tasks else {}


_NUMBERED = re.compile(r"(?:^|\n)[ \t]*\(?(\d)[).][ \t]+([^\n]{1,100})")
_PICKS = re.compile(r"\b(?:which|pick|choose|select|option|correct)\b", re.IGNORECASE)
_ASKS = re.compile(
    r"(?:^|\n)[^\w\n]{0,9}(?:what|who|where|when|how (?:many|much)|in which)\b[^\n]{1,300}[?:]\s*\(?1[).]",
    re.IGNORECASE,
)


def _numbered(asked: str) -> dict[str, str]:
    """The options with numbers, where the request asks for one thing or says that one is to be picked."""
    listed = {number: text.strip(" .*") for number, text in _NUMBERED.findall(asked)}
    asks = _PICKS.search(asked[:500]) or _ASKS.search(asked[:2000])
    tasks = any(text.endswith("?") for text in listed.values())  # a list of questions leaves no choice
    return listed if len(listed) > 1 and next(iter(listed)) == "1" and asks and not tasks else {}


_LABEL = r"[\w&+#-][\w&+#'’/-]*(?:[ _][\w&+#'’-]+){0,3}?"
_ITEM = rf"[\"'“‘`*\[(]*{_LABEL}[\"'”’`*\])]*(?: ?\([^()\n]{{1,80}}\))?"
_LIST = re.compile(
    rf"(?P<first>{_ITEM})(?P<rest>(?:\s*(?:,|/|\||;)\s*(?:or |and |oder |ou |o )?{_ITEM})*)"
    rf"(?P<last>,?\s+(?:or|and|oder|ou|o)\s+{_ITEM})?(?=[\s.:;!?)\]\n]|$)"
)
_BULLET = re.compile(r"(?:[-*•]|\d[.)])[ \t]+([^\n]+)")
_BULLETS = re.compile(r"(?:[ \t]*(?:[-*•]|\d[.)])[ \t]+[^\n]{1,160}(?:\n|$)){2,}")
_NO_LABEL = re.compile(
    r"(?:the|an?|it|this|that|them|both|each|others|following|these|those|text|message|review|email|so|then)",
    re.IGNORECASE,
)


_BRACKETED = re.compile(r"\[\[([\w -]{1,20})\]\]")
_LABELLED = re.compile(r"[\"“'`](\w{3,20}): ?(\w[\w -]{0,20})[\"”'`]")


def labels(text: str) -> dict[str, str]:
    """The labels that a request lists to choose from, each as it writes it."""
    labelled = _LABELLED.findall(text)
    quoted = [value for label, value in labelled if label == labelled[0][0]]
    for marked in (_BRACKETED.findall(text), quoted):  # [[A]], "Verdict: A": as judges are told to write
        if len(set(marked)) > 1:
            return {label: label for label in dict.fromkeys(marked)}
    bare = re.sub(r"\*\*|`", "", text)
    for announced in phrases.LISTS.finditer(bare):
        after = phrases.LEAD_IN.sub("", bare[announced.end() : announced.end() + 600], count=1)
        bullets = _BULLETS.match(after)
        items = [re.split(r"\s*(?::|–|—| - |\()", one)[0] for one in _BULLET.findall(bullets[0])] if bullets else None
        labels = [_trimmed(item) for item in items or _listed(after)]
        fit = all(0 < len(label.split()) <= 4 and not _NO_LABEL.fullmatch(label) for label in labels)
        if 2 <= len(labels) <= 40 and fit:
            return {label: label for label in labels}
    return {}


_MORE = re.compile(r"(?: [\w-]+){1,3}(?=[.,:;!?)\]\"'”\n]|$)")


def _listed(text: str) -> list[str]:
    found = _LIST.match(text)
    if not found or not (found["last"] or re.search(r"[,/|;]", found["rest"])):
        return []
    whole = re.sub(r"\([^()]*\)", "", found[0])
    more = _MORE.match(text, found.end())
    if more and re.search(r"\b(?:not|non|no|[A-Z]{3,})$", whole):  # "toxic or not toxic"
        whole += more[0]
    return [item for item in re.split(r"\s*(?:,|/|\||;|\b(?:or|and|oder|ou|o)\b)\s*", whole) if item.strip()]


def _trimmed(item: str) -> str:
    item = re.sub(r"\s+(?:only|alone)\W*$", "", item)
    return re.sub(r"^(?:an?|the|is)\s+", "", item.strip(" \t\n.,;:\"'“”‘’`*[](){}"), flags=re.IGNORECASE)


_THING = r"[$€£]?(?:\w[\w.°/-]{0,30})?\w%?"
ALTERNATIVES = re.compile(
    rf"(?:(?P<many>{_THING}(?:, {_THING})+),? or (?:an? |the )?(?P<last>{_THING})"
    rf"|(?P<one>{_THING}) or (?:an? |the |is it |just |a single )?(?P<other>(?:not )?{_THING}))(?=\s*(?:[?:,.\n(]|$))",
    re.IGNORECASE,
)
_NO_ALTERNATIVE = re.compile(
    r"more|less|so|not|fewer|later|one|two|three|no|he|she|they|it|and|earlier|over|under|other", re.IGNORECASE
)
_WHICH = re.compile(r"(?:which|who|what|where|when)\b[^,?]*, ", re.IGNORECASE)
"""What stands before the alternatives in "Which is larger, 9.11 or 9.9?"."""


_WHICH_OF = re.compile(
    r"(?:which|who|what|(?:find |pick |"
    r"spot )?(?:the )?odd one out)\b[^?:]*: (?P<things>[^,?:]{1,40}(?:, [^,?:]{1,40}){1,12}(?:,? or [^,?]{1,40})?)\?*",
    re.IGNORECASE,
)


def alternatives(said: list[str]) -> dict[str, str]:
    """The things between which a question leaves the choice: "positive or negative?"."""
    for sentence in reversed(said):
        listed = _WHICH_OF.fullmatch(sentence)
        if listed:
            things = [thing for thing in re.split(r",? or |, ", listed["things"]) if thing]
            if all(len(thing.split()) <= 3 and not thing[:1].isdigit() for thing in things):
                return {thing: thing for thing in things}
        which = _WHICH.match(sentence)
        found = ALTERNATIVES.search(sentence, which.end() if which else 0)
        if found and (sentence.rstrip().endswith(("?", ":")) or sentence.lower().startswith("true or")):
            many = found["many"].split(", ") if found["many"] else [found["one"]]
            things = [*many, found["last"] or found["other"]]
            if not any(_NO_ALTERNATIVE.fullmatch(thing) for thing in things):
                return {thing: thing for thing in things}
    return {}
