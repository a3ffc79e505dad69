"""What a text says itself is its answer: "the answer is", "Answer:", "####"."""

import re

from suffice.answers import values
from suffice.answers.options import option_at_start
from suffice.answers.prose import is_laid_out, unmarked
from suffice.answers.requests import Question
from suffice.answers.spelling import NO, YES
from suffice.answers.stated import said_formula, said_letter, said_number
from suffice.answers.whole import PERSONAL

_LABEL = (
    r"(?:(?:final|correct|right|best|short|overall|my|the|numerical|estimated)\s+)*"
    r"(?:answer|result|solution|verdict|conclusion|total|output|classification|label|category|prediction|decision|"
    r"score|rating|grade|sentiment|intent|priority|"
    r"antwort|ergebnis|lösung|réponse|résultat|respuesta|resultado|risposta|risultato|resposta|答案|答え|回答)"
)
_SAYS = re.compile(
    r"\banswer\b(?! [A-J]\b)[^.\n:=?]{0,60}?(?:\bis\b|\bwas\b|\b(?:would|must|should) be\b|:|=)|####|"
    rf"(?:^|\n)[ \t>*_#-]*{_LABEL}[*_]*\s*[:=：][*_]*|"
    r"\b(?:die antwort|das ergebnis)\b[^.\n:?]{0,40}?\b(?:ist|lautet|beträgt)\b:?|\bla (?:réponse|respuesta|"
    r"risposta|resposta)\b"
    r"[^.\n:?]{0,40}?\b(?:est|es|è|é)\b:?|答案是?[:：]?",
    re.IGNORECASE,
)
_ASIDE = re.compile(r",|;|\s\(|\.(?=\s|$)|\s[–—-]\s|\b(?:because|since|where|as|which|with|weil|da|car|porque)\b|\n")
_VAGUE = re.compile(
    r"\W*(?:not\b|(?:it |that )?depends|unclear|unknown|below|above|as follows|in the|the following|"
    r"to\b|that\b|that it)",
    re.I,
)


_FINALLY = re.compile(
    r"\bfinal answer\b[^.\n:=?]{0,20}?(?:\bis\b|:|=)|####|réponse finale|respuesta final", re.IGNORECASE
)


def finally_stated(text: str, question: Question) -> str | None:
    """What a text says is its final answer: where nothing is asked, "Answer:" may be a part of what was made."""
    return stated(text, question) if _FINALLY.search(text[-_TAIL:]) else None


_TAIL = 2000


def stated(text: str, question: Question) -> str | None:
    """What the text says is its answer, by its last such statement."""
    found = [one for one in (said_letter(text), said_formula(text), said_number(text)) if one and one[0]]
    best = max(found, key=lambda one: one[:2]) if found else None
    says = list(_SAYS.finditer(text))[-20:]
    last_line = text.rstrip().rfind("\n") - 1
    says = [
        say
        for say in says
        if re.search(r"answer|antwort|r[ée]p|resp|risp|#|答", say[0], re.IGNORECASE)
        or (say.start() >= last_line and (question.want == "number" or question.options or not is_laid_out(text)))
    ]
    answers = [
        _said(text[say.end() : say.end() + 300], question) for say in says if say[0].endswith((":", ":*", ":**"))
    ]
    if len({answer for answer in answers if answer}) > 2:  # a list of questions and answers
        return ""
    for say in reversed(says):
        if best and best[1] > say.start() + 10:
            break
        said = _said(text[say.end() : say.end() + 300], question)
        if said and not (question.scale and not re.search(r"\d", said)):  # "the answer is incomplete. Score: 5"
            return said
    return best[2] if best else None


def _said(rest: str, question: Question) -> str | None:
    """The short answer at the beginning of what follows a statement."""
    rest = unmarked(rest.lstrip(" \t*_:\n>")).strip()
    rest = rest.partition("\n")[0]
    if not rest or _VAGUE.match(rest):
        return None
    if option := option_at_start(rest, question):
        return option
    letter = re.match(r"\(?([A-J])\)?(?:[.:)]|\s*$|\s+(?:because|since|as)\b)", rest)
    if letter and not re.match(r"[AI] [a-z]", rest):
        return letter[1]
    head, colon, _ = rest.partition(": ")
    rest = head if colon and values.amount(head, question.scale) else rest
    aside = _ASIDE.search(rest, 1)
    said = (rest[: aside.start()] if aside else rest).strip()
    verdict = re.match(r"\w+", said)
    if verdict and (YES.fullmatch(verdict[0]) or NO.fullmatch(verdict[0])) and len(said.split()) < 8:
        return verdict[0]
    if re.search(r"\d", rest[:60]) and (re.search(r"\d", said) or "=" in rest):
        equals = said.rpartition("=")[2].strip()
        return values.amount(equals, question.scale) or values.date_in(said) or values.time_in(said)
    spoken = values.amount(said)
    if spoken:
        return spoken
    if PERSONAL.search(said) or re.search(r"[\\$={}]|ly$", said):
        return None
    return said if len(said.split()) <= (4 if said[0].isupper() else 3) else None
