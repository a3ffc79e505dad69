"""Yes and no, with their grounds."""

import re

from suffice.answers.prose import sentences, unmarked, words_of
from suffice.answers.requests import Question

_VERDICT = re.compile(
    r"\W*(?P<verdict>yes|no|yeah|yep|nope|ja|nein|oui|non|sí|sim|não|sì)\b(?P<mark>\s*(?:[.,;:!–—\n*]|-\s|"
    r"$)\W*)?(?P<rest>.{0,80})",
    re.IGNORECASE | re.DOTALL,
)
_COURTESY = re.compile(
    r"(?:of course|absolutely|certainly|sure|definitely|i(?:'d|’d| would| can| could|'ll|’ll| will|'m|’m| am)\b|"
    r"here\b|"
    r"let(?:'s|’s| me)|please|problem|worries|thanks|thank|happy|we can|go ahead|one|matter|need|doubt)",
    re.IGNORECASE,
)
_OFFER = re.compile(
    r"(?:(?:of course|absolutely|certainly|sure|definitely)[,!. ]+)?(?:i(?:'d|’d| would| can| could|'ll|’ll| will|"
    r"'m|’m| am) "
    r"(?:be )?(?:happy|glad|help|assist|do|able|able to|familiar)|here\b|let(?:'s|’s| me)|problem|worries|thanks)",
    re.IGNORECASE,
)
AGREES = re.compile(
    r"\W*(?:absolutely|definitely|certainly|indeed|correct|that(?:'s|’s| is) (?:correct|right|true)|right|true|"
    r"of course|exactly)\b"
    r"(?P<not> not)?(?=\W*(?:$|[.,;:!–—]))",
    re.IGNORECASE,
)
_DISAGREES = re.compile(
    r"\W*(?:incorrect|false|that(?:'s|’s| is) (?:incorrect|false|not (?:correct|right|true))|"
    r"never|unfortunately,? (?:not|no)|not (?:really|quite|exactly|at all|anymore))\b",
    re.IGNORECASE,
)
_ENDS_IN_VERDICT = re.compile(
    r"(?:^|\n|[.!] )\W*(?:so|therefore|thus|hence|in short|overall|short answer|in conclusion|bottom line|"
    r"to summari[sz]e)"
    r"[*_]*[,:]?[*_]* [*_]*(yes|no)\b[*_]*(?=[.,;:!\s]|$)|\n\W*(yes|no)\W*$|^\W*[^,.:;\n]{1,40}, [*_]*(yes|"
    r"no)\b[*_]*(?=[.,;:!]|$)",
    re.IGNORECASE,
)


_HEDGE = re.compile(
    r"\b(?:depend(?:s|ing)?|if you ask|in many|in most|generally|usually|typically|often|personally|in my opinion|"
    r"varies)\b",
    re.IGNORECASE,
)


def verdict(text: str, question: Question) -> str | None:
    """A yes or no with its grounds."""
    if question.want not in ("any", "verdict") or question.options:
        return None
    asked = question.want == "verdict"
    if len(text.split()) > (250 if asked else 150):
        return None
    if _HEDGE.search(" ".join(sentences(text)[:2])):
        return None
    found = _VERDICT.match(text)
    if found:
        rest = found["rest"].lstrip(" *_,.!:;–—-")
        fits = found["mark"] or (asked and re.match(r"(?:it|this|that|he|she|they|you|there|the)\b", rest))
        if fits and not (_OFFER if asked else _COURTESY).match(rest):
            return found["verdict"]
        return None
    ends = _ENDS_IN_VERDICT.search(text)
    if ends:
        return next(verdict for verdict in ends.groups() if verdict)
    if asked:
        if agrees := AGREES.match(text):
            return "no" if agrees["not"] else "yes"
        return "no" if _DISAGREES.match(text) else _echo(text, question)
    return None


_NOT = re.compile(
    r"not|never|cannot|can't|isn't|aren't|wasn't|weren't|doesn't|don't|didn't|won't|no|nicht|kein|"
    r"keine|pas"
)
_SMALL_WORDS = """
    a an the is was are were be been being it its it's that this these those of in on at by to for from as and or so
    which who what where when would will can could may might does do did has have had there with into about her his
    their they he she also very just only called known named answer correct right therefore thus hence then here
    actually indeed according based located currently der die das ist war von und le la les est de du des el los es
    son un une una ein eine c'est c you your i my we our
"""
SMALL = frozenset(_SMALL_WORDS.split())


def _echo(text: str, question: Question) -> str | None:
    """The verdict of a sentence that says the question's words again, with or without a "not"."""
    said = sentences(unmarked(text))
    for sentence in {0: said[0], 1: said[-1]}.values() if said else ():
        sentence = re.sub(r"^(?:in|under|according to|with|by) [^,]{1,60}, ", "", sentence, flags=re.IGNORECASE)
        clause = re.split(r",? (?:because|since|as|due to|given|if|unless|for)\b|[,;:(–—]", sentence)[0]
        words = [word.replace("’", "'") for word in words_of(clause)]
        content = [word for word in words if word not in SMALL]
        new = [word for word in content if not known(word, question) and not _NOT.fullmatch(word)]
        denied = any(_NOT.fullmatch(word) for word in words)
        same = len(content) - len(new) - denied
        conditional = re.search(r"\b(?:if|unless)\b", sentence) is not None
        pronoun = words[:1] and words[0] in ("it", "they", "this", "that", "he", "she", "you", "these")
        if (
            same >= (1 if pronoun and not new else 2)
            and not conditional
            and (len(new) <= (same > 2) or (denied and len(new) <= 3))
        ):
            return "no" if denied else "yes"
    return None


def known(word: str, question: Question) -> bool:
    """Whether a word is one of the question's, up to its ending."""
    stem = word[: max(4, len(word) - 3)]
    return word in question.words or (len(word) > 4 and any(known.startswith(stem) for known in question.words))
