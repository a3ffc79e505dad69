"""Text as a person reads it: sentences, without marks of layout, and without the courtesies around what is said."""

import re
from collections.abc import Iterator

_STOP = re.compile(
    r"(?:(?<![ .][A-Z])(?<!\b(?:[Mm]rs|vs\.|e\.g|i\.e))(?<!\b(?:[MD]r|St|vs|No|Jr|ca|Mt))\.|[!?。？！])"
    r"[\"”’')\]*_]*(?:\s+|$)|\s*\n\s*"
)
_FENCE = re.compile(r"```[ \t]*(\w*)[ \t]*\n?(.*?)\n?[ \t]*```", re.DOTALL)
_PLAIN_FENCES = ("", "text", "txt", "plaintext", "plain", "markdown", "md", "answer", "math", "latex")


def sentences(text: str) -> list[str]:
    """The sentences and lines of a text; each keeps the mark it ends with."""
    found, start = [], 0
    for stop in _STOP.finditer(text):
        found.append(text[start : stop.end()].strip())
        start = stop.end()
    found.append(text[start:].strip())
    return [one for one in found if one]


def words_of(text: str) -> Iterator[str]:
    """The words of a text in small letters, without what a genitive adds."""
    for word in re.findall(r"[^\W_][\w.'’-]*", text.lower()):
        yield re.sub(r"['’]s?$", "", word.rstrip(".'’-"))


def unfenced(text: str) -> str:
    """The text in a fence that stands around the whole of it; code is left in its fence."""
    fenced = _FENCE.fullmatch(text.strip())
    return (
        fenced[2].strip() if fenced and fenced[1].lower() in _PLAIN_FENCES and "```" not in fenced[2] else text.strip()
    )


_TABLE = re.compile(r"(?:^[ \t]*\|[^\n]*\|[ \t]*(?:\n|$)){2,}", re.MULTILINE)


def without_code(text: str) -> str:
    """The text around tables and fenced blocks, where there is some before the first."""
    text = _TABLE.sub("", text).strip() or text
    before = text.partition("```")[0].rstrip()
    announced = before.endswith(":") and len(sentences(before)) < 2  # the block itself is what is said
    return _FENCE.sub("", text).strip() if before and not announced else text


def has_code(text: str) -> bool:
    """Whether there is a fenced block in a text."""
    return "```" in text


_MARKS = [
    (re.compile(r"\*\*\*?|__|`"), ""),
    (re.compile(r"(?<![\w*])[*_](?=[^\s*_])|(?<=[^\s*_])[*_](?![\w*])"), ""),
    (re.compile(r"^[ \t]*(?:#{1,6}[ \t]+|>[ \t]*)", re.MULTILINE), ""),
    (re.compile(r"\\(?:text|math)\w*\s*\{([^{}]*)\}"), r"\1"),
    (re.compile(r"\\[()\[\]]"), ""),
    (re.compile(r"\\(?:quad|,|;|!| )"), " "),
    (re.compile(r"\\(log|ln|sin|cos|tan|min|max)\b"), r"\1"),
    (re.compile(r"\\times|\\cdot"), "×"),
    (re.compile(r"\\approx"), "≈"),
    (re.compile(r"(?<!\\)\$([^$\n]{1,200}?)(?<!\\)\$"), r"\1"),
    (re.compile(r"\\([$%])"), r"\1"),
]


_PICTURES = re.compile(r"[ \t]*[\u2600-\u27bf\u2b50\u2b55\U0001f000-\U0001faff\ufe0f\u200d]+")


def without_pictures(text: str) -> str:
    """The text without small pictures."""
    return _PICTURES.sub("", text)


def unmarked(text: str) -> str:
    """The text without marks of emphasis, headings, and LaTeX around words and numbers."""
    for mark, same in _MARKS:
        text = mark.sub(same, text)
    return text.strip()


_OPENING = re.compile(
    r"(?:(?:sure|certainly|of course|absolutely|great question|good question|happy to help|no problem|okay|ok|alright|"
    r"got it|gladly|thanks for (?:asking|the question)|hi there|hello|hey)\b[^.!:\n]{0,60}[.!:]\s+|"
    r"(?:let(?:'s|’s| me| us) [^.!:\n]{0,60}|here(?:'s|’s| is| are) [^.!:\n]{0,80})[.!:]\s+|"
    r"(?:sure|certainly|of course|okay|ok)[,!.:–—]\s*)",
    re.IGNORECASE,
)
_CLOSING = re.compile(
    r"\W*(?:let me know|would you like|do you (?:want|need|have)|i hope|hope (?:this|that|it)|feel free|"
    r"is there anything|are you (?:reading|planning|studying|working|asking|curious|looking|preparing)|curious|"
    r"if you(?:'d|’d)? (?:have|need|want|like|would)|please (?:let|feel|note)|happy to|want me to|shall i|should i|"
    r"need (?:help|anything)|can i help|does (?:this|that) help|anything else|just let me|glad to|good luck|enjoy|"
    r"have a (?:great|good|nice)|i(?:'m|’m| am) happy to|i can also|sag (?:mir )?bescheid|n'hésite|avísame)\b",
    re.IGNORECASE,
)


def without_courtesies(text: str) -> str:
    """The text without "Sure!" before it, and "Let me know if …" after it."""
    for _ in range(3):
        opening = _OPENING.match(text)
        if not opening or opening.end() >= len(text):
            break
        text = text[opening.end() :]
    for _ in range(4):
        ends = [stop for stop in _STOP.finditer(text) if stop.end() < len(text.rstrip())]
        if not ends or not _CLOSING.match(text[ends[-1].end() :]):
            break
        text = text[: ends[-1].end()].rstrip()
    return text.strip()


_REFUSAL = re.compile(
    r"\W*(?:(?:oh|hmm|well|unfortunately),? )?(?:"
    r"i(?:'m|’m| am) (?:\w+ )?(?:sorry|afraid|unable|not able|not sure|not certain|not comfortable)|"
    r"(?:i(?:'m|’m| am) )?sorry\b|my apologies|i apologi[sz]e|(?:as|i(?:'m|’m| am)) an ai\b|"
    r"i (?:really |just |simply )?(?:can(?:'|’)?t|cannot|can not|won(?:'|’)t|will not|am unable|do not|don(?:'|’)t|"
    r"couldn(?:'|’)t|"
    r"wouldn(?:'|’)t|must decline|have to decline|need more|would need|lack)\b|"
    r"(?:there is|there's) (?:not enough|no|insufficient) (?:information|way to)|not enough information|"
    r"(?:could|can) you (?:please )?(?:clarify|provide|share|tell|specify|give|send|paste)|"
    r"please (?:provide|share|clarify|paste|specify|send (?:me|us|over|your))|"
    r"(?:es )?tut mir leid|ich kann (?:ihnen |dir |das )?(?:\w+ ){0,3}nicht|(?:je suis )?désolée?|je ne peux pas|"
    r"lo siento|no puedo)",
    re.IGNORECASE,
)
_NOTHING = re.compile(
    r"\W*(?:nothing|none|n/?a|no (?:answer|idea|number|result|solution|clue)|(?:it )?depends[^.]*|not sure|unclear|"
    r"hm+|cannot (?:be )?determined?|"
    r"(?:you(?:'|’)?re|you are) (?:very |most )?welcome[^.]*|(?:any|no) ?(?:time|problem|worries)[^.]*|"
    r"my pleasure[^.]*|"
    r"(?:hi|hello|hey|good (?:morning|evening|afternoon|night)|goodbye|bye|see you|take care|thank(?:s| you)|glad|"
    r"happy|"
    r"sounds (?:good|great)|great|awesome|nice|congrat\w+|sure|of course|okay|ok|done|will do|got it|understood|"
    r"gern(?:e)?(?: geschehen)?|bitte(?: schön| sehr)?|hallo|de rien|avec plaisir|bonjour|de nada|hola|"
    r"prego)\b[^.]{0,60})\W*",
    re.IGNORECASE,
)


def is_refusal(text: str) -> bool:
    """Whether a text begins by saying that there will be no answer."""
    return _REFUSAL.match(text[:200]) is not None


def says_nothing(text: str) -> bool:
    """Whether a short text is small talk, or says that it does not know."""
    return _NOTHING.fullmatch(text[:200]) is not None or is_refusal(text)


_QUESTION_BACK = re.compile(r"\?[\"”')*_\s]*$")


def asks_back(text: str) -> bool:
    """Whether a text ends in a question."""
    return _QUESTION_BACK.search(text) is not None


_BOLD = re.compile(r"\*\*([^*\n]{1,80})\*\*|__([^_\n]{1,80})__")


def in_bold(text: str) -> list[str]:
    """The parts of a text that are in bold."""
    return [one or other for one, other in _BOLD.findall(text)]


_LAID_OUT = re.compile(
    r"^[ \t]*(?:#{1,6}[ \t]+\S|(?:[-*•]|\d{1,2}[.)])[ \t]+\S|\|.*\|[ \t]*$|\*\*[^*\n]{1,60}:?\*\*:?[ \t]*$)", re.M
)
_MOST_PARAGRAPHS = 3


def is_laid_out(text: str) -> bool:
    """Whether a text is made to be read rather than to answer: headings, lists, tables, many paragraphs."""
    return len(_LAID_OUT.findall(text)) > 1 or len(re.findall(r"\n\s*\n", text.strip())) >= _MOST_PARAGRAPHS


_DEPENDS = re.compile(
    r"\b(?:depend(?:s|ing)?|var(?:y|ies)|ranges?|anywhere (?:from|between)|it['’]s (?:hard|difficult) to say|"
    r"rule of thumb)\b",
    re.IGNORECASE,
)
_RANGE = re.compile(
    r"\bbetween \S*\d|(?<!\d)\d[\d.,]{0,12}[km%]?(?:-|–|—| to | - | – )[$€£]?\d[\d.,]*[km%]?(?! ?=)",
    re.IGNORECASE,
)


def hedges(text: str) -> bool:
    """Whether a text begins with a range, or by saying that it all depends."""
    said = sentences(text)[:2]
    return any(_DEPENDS.search(one) for one in said) or any(_RANGE.search(one) for one in said[:1])
