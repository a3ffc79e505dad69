"""Short responses, which are compared whole: no part of one stands for the rest.

What a sentence says again of its question is no part of what it answers: of "The capital of France is Paris." that is
"Paris". It is known by the words of the question, and by a few that say no more than "it is".
"""

from suffice.answers.prose import marked, sentences, unfenced, unmarked
from suffice.answers.requests import Request
from suffice.answers.values import date, without_asides
from suffice.answers.words import ASIDE, IT_IS, folded, is_unspaced, within

MOST_WORDS = 6
LONGEST = 60
MOST_SIGNS = 24
"""Words and characters of what is short, and characters where words have no spaces around them."""
_GROUNDS = 40
"""Words of a response of which the first sentence may be the answer, and the rest its grounds."""


def whole(text: str, request: Request) -> str | None:
    """A short response as it stands, or what its one sentence adds to the question; None for what is not short.

    >>> from suffice.answers.requests import read_request
    >>> asked = read_request([{"role": "user", "content": "What is the capital of France?"}])
    >>> whole("`4 True`", asked), whole("The capital of France is Paris.", asked), whole("I don't know.", asked)
    ('4 True', 'Paris', None)
    """
    text = without_asides(text)
    said = sentences(unfenced(text))
    if not said or said[-1].rstrip("*_\"') ").endswith(("?", "？", "؟", ":", "：")) or ASIDE.open(folded(text)):
        return None
    bare = _trimmed(_without_label(unmarked(unfenced(text))))
    chosen = within(folded(bare), folded(request.question))
    alone = "\n\n" not in bare and len(said) == bare.count("\n") + 1 and _is_short(bare)
    if alone and (chosen or not echoes(bare, request)):
        return _head(bare)
    if len(text.split()) > _GROUNDS or len(text) > 6 * _GROUNDS:
        return None
    apart = [one for one in marked(text if "```" in text else said[0]) if _is_short(one.strip())]
    if not apart and said[0].rstrip("* ").endswith((":", "：", "?", "？")):
        return None
    rest = unmarked(apart[0]).rstrip(":") if len(apart) == 1 else without_echo(_without_label(said[0]), request)
    rest = _trimmed(_without_label(rest))
    exclaimed = said[0].rstrip("*_\"' ").endswith(("!", "！"))  # a greeting rather than an answer and its grounds
    known = exclaimed or _is_known(rest, folded(request.question))
    alone = len(said) == 1 or (len(rest.split()) <= MOST_WORDS // 2 and not known)
    return _head(rest) if alone and _is_short(rest) else None


def _without_label(text: str) -> str:
    """What follows a label of a word or two: of "Output: 14" that is 14."""
    label, mark, rest = text.replace("：", ": ").partition(": ")
    fits = mark and 0 < len(label.split()) <= 2 and not any(one.isdigit() for one in label) and "\n" not in label
    return rest.strip() if fits and rest.strip() else text


def _is_short(text: str) -> bool:
    most = MOST_SIGNS if is_unspaced(text) else LONGEST
    return 0 < len(text) <= most and len(text.split()) <= MOST_WORDS and "\n\n" not in text


def echoes(bare: str, request: Request) -> bool:
    """Whether two words of it, or four signs, are the question's."""
    if is_unspaced(bare):
        return any(bare[:length] in request.question for length in range(4, len(bare)))
    shared = [word for word in folded(bare).split() if f" {word} " in folded(request.question)]
    return len(shared) > 1 or (len(bare.split()) > 1 and _is_known(bare.split()[0], ""))


def without_echo(sentence: str, request: Request) -> str:
    """A sentence without the question's words at its beginning and its end, as long as something is left.

    Where all of it is the question's, what is left is as much of its end as the question has in one piece.

    >>> from suffice.answers.requests import Request
    >>> without_echo("日本の首都は東京です。", Request(question="日本の首都はどこですか？"))
    '東京'
    """
    bare = _trimmed(without_asides(unmarked(sentence)))
    if is_unspaced(bare) and " " not in bare:
        return _without_signs(bare, request.question)
    known = folded(request.question)
    said = bare.split()
    while len(said) > 1 and _is_known(said[0], known) and not within(folded(" ".join(said)), known):
        said = said[1:]
    while len(said) > 1 and _is_known(said[-1], known) and not within(folded(" ".join(said)), known):
        said = said[:-1]
    return " ".join(said)


def _is_known(word: str, question: str) -> bool:
    """Whether a word is the question's, be its ending another, or says nothing."""
    if "(" in word:  # a formula
        return False
    word = folded(word).rstrip().removesuffix("'s").rpartition("'")[2]  # of "c'était" what the question has too
    return len(word) < 2 or f"{word} " in question or IT_IS.open(f"{word} ") or (len(word) > 4 and word[:5] in question)


def _without_signs(bare: str, question: str) -> str:
    """The same where words have no spaces around them: by the longest runs of signs that the question has too."""
    start = max((length for length in range(len(bare)) if bare[:length] in question), default=0)
    end = max((length for length in range(len(bare) - start) if bare[len(bare) - length :] in question), default=0)
    return bare[start : len(bare) - end].strip(" はが是为：:") or bare


def _head(text: str) -> str:
    """What stands before an explanation: a comma and small letters, or a dash."""
    for sign in (" – ", " — ", " - "):
        text = text.partition(sign)[0] or text
    head, comma, rest = text.partition(", ")
    text = head if comma and rest[:1].islower() and len(rest.split()) > 1 and "," not in rest else text
    return date(text) or text


def _trimmed(text: str) -> str:
    bare = without_asides(text).strip(" \t\n\"“”'‘’`*_").rstrip(".!,;:。！।").strip(" \"“”'‘’`*_")
    number, point, rest = bare.partition(".")  # of a list, or of a move
    return rest.strip() if point and number.isdigit() and rest.strip() and not rest[0].isdigit() else bare
