"""Responses that are nothing but an answer: an amount, a date, a name, a label."""

import re

from suffice.answers import foreign, prose, values
from suffice.answers.prose import unmarked
from suffice.answers.requests import UNASKED, Question
from suffice.answers.spelling import NO, SUBSCRIPTS, YES, as_date, trimmed

PERSONAL = re.compile(
    r"\b(?:i|i'm|i’m|i'd|i'll|i've|you|you're|you’re|your|we|we're|let's|let’s|me|my|us|our|please|here|here's|sure|"
    r"thanks|"
    r"thank|welcome|sorry|hello|hi|dear|ich|sie haben|je|vous|tu|yo|usted)\b",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"[{};<>|\\^~=]|\w\(|::|->|--\w|\$\w|\b(?:SELECT|FROM|def|import|return|print|const|var|git|sudo|npm|pip)\b|"
    r"^[/.]\w|\w/\w+/"
)
MOST_WORDS = 5
_MOST_SIGNS = 8
LIST = re.compile(r"\[[^\[\]\n]{1,60}\](?!\()|\bO\([^()\n]{1,20}\)")
"""A list in brackets, or the order of an algorithm."""
SEVERAL = re.compile(r"\b([a-z]) ?= ?-?\d[\d./]*(?:(?:,? (?:or|and) |, )(?:\1 ?= ?)-?\d[\d./]*)+")
_LABELLED = re.compile(r"(?P<label>[^\W\d_][\w -]{1,30}?)\s?[:：]\s*(?P<value>\S.*)", re.DOTALL)
_LABEL_NOUNS = (
    r"(?:sentiment|tone|category|label|intent|language|classification|class|verdict|result|priority|topic|severity|"
    r"rating|"
    r"emotion|type|answer|total|sum|difference|product|average|capital|date|year|time|name|department|score|subject)"
)
_IS = re.compile(
    r"(?:(?i:it|that|this)(?:['’]s| is| was| would be)|(?:(?i:the|its?|this|that|these|her|his|their)|[A-Z][\w’']*)\b"
    r"(?P<subject>[^.,:;?!\n]{0,80}?)\s(?:is|was|are|were|would be|will be|equals|lautet|ist|est|es))"
    r"\s(?:clearly |definitely |probably |likely |overall |in |an? |the )*(?P<value>(?:[^.,;:?!\n]|"
    r"[.,:](?=\d)){1,40})[.!]*",
)


def bare_value(text: str, question: Question) -> str | None:
    """A response that is nothing but an amount, a date or a time, with or without a label before it."""
    bare = unmarked(text)
    if "\n" in bare or len(bare) > 120:
        return None
    bare = trimmed(_without_label(bare))
    if LIST.fullmatch(bare) or SUBSCRIPTS.fullmatch(bare):
        return bare
    if question.want == "year":
        return None
    if question.want in ("time", "date") and values.time_in(bare):
        return None
    if values.amount(bare, question.scale, longest=MOST_WORDS + 1) and (question.want != "date" or bare.isdigit()):
        return bare
    if question.want == "number" and _FORMULA.fullmatch(bare):
        found: list[str] = re.findall(r"-?\d+(?:\.\d+)?", bare)
        fresh = [number for number in found if number not in question.numbers]
        if bare.count(",") > 1 and len(fresh) == 1:  # a sequence, continued
            return fresh[0]
        return bare if SEVERAL.fullmatch(bare) else bare.rpartition("=")[2].strip()
    return bare if as_date(bare, UNASKED) or (len(bare) <= 10 and values.time_in(bare)) else None


_FORMULA = re.compile(r"(?=.*[\d^√π])(?:\d|[a-z](?![a-z])|[-+*/^()=√π., ]|\\(?:sqrt|frac|pi|cdot)|[{}]){1,50}")


def _without_label(bare: str) -> str:
    labelled = _LABELLED.fullmatch(bare)
    fits = labelled and len(labelled["label"].split()) <= 3 and not _NO_LABEL.search(labelled["label"])
    return labelled["value"] if labelled and fits else bare


_NO_LABEL = re.compile(rf"^(?:in|note|tip|example|subject|hint|p\.?s|warning)\b|{PERSONAL.pattern}", re.IGNORECASE)


def whole(text: str, question: Question) -> str | None:
    """A response that is nothing but an answer."""
    bare = unmarked(text)
    if not bare or "\n" in bare or len(bare) > 120 or prose.asks_back(bare):
        return None
    bare = _without_label(bare)
    said = _IS.fullmatch(bare)
    if said:
        value = said["value"]
        proper = re.match(r"[A-Z\d$€£(-]", value) is not None
        labels = re.search(rf"\b{_LABEL_NOUNS}\b", said["subject"] or "", re.IGNORECASE) is not None
        return value if (proper or labels) and len(bare.split()) <= 16 and len(value.split()) <= 3 else None
    if question.want == "verdict" and question.has_one_answer is None:
        verdict = trimmed(bare)
        return verdict if len(verdict.split()) == 1 and _VERDICT.fullmatch(verdict) else None
    exclaims = question.want is None and bare.rstrip().endswith("!")
    return None if exclaims else _short(bare)


_VERDICT = re.compile(
    rf"{YES.pattern}|{NO.pattern}|true|false|correct|incorrect|right|wrong|valid|invalid", re.IGNORECASE
)
_VERB = re.compile(
    r"\b(?:is|are|was|were|has|have|had|will|would|can|could|does|did|ist|sind|hat|gibt|est|son|hay|tiene)\b|"
    r"\w['’](?:s|re|ll|ve|d)\s"
)


def _short(bare: str) -> str | None:
    """A text of a few words that is no sentence."""
    bare = trimmed(bare)
    cut = re.fullmatch(r"(.{1,40}?)\s+\([^()]*\)", bare)
    bare = cut[1] if cut else bare
    if not 0 < len(bare.split()) <= MOST_WORDS or re.search(r"[.!?;:]\s|,\s*(?![A-Z\d])|,.*,", bare):
        return None
    if foreign.is_other_script(bare) and len(bare) > _MOST_SIGNS and " " not in bare:
        return None  # a sentence, where nothing stands between words
    if (
        PERSONAL.search(bare)
        or (_CODE.search(bare) and not LIST.fullmatch(bare))
        or _VERB.search(bare)
        or not re.search(r"\w", bare)
    ):
        return None
    return bare
