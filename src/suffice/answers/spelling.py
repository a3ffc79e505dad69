"""One spelling for answers that say the same: without unit, article or mark, in the words of the request."""

import re

from suffice.answers import values
from suffice.answers.prose import unmarked, words_of
from suffice.answers.requests import UNASKED, Question

_ARTICLE = re.compile(r"(?:the|an?|le|la|les|el|der|die|das)\s+(?=\S)", re.IGNORECASE)
YES = re.compile(r"(?:yes|yeah|yep|ja|oui|sí|sim|sì|да|はい|是的?)", re.IGNORECASE)
NO = re.compile(r"(?:no|nope|nein|non|não|нет|いいえ|不是?|否)", re.IGNORECASE)


def spelled(answer: str, question: Question = UNASKED) -> str:
    """An answer in the one spelling that it shares with others that say the same."""
    bare = trimmed(answer)
    if question.options and (option := as_option(bare, question)):
        return option
    if YES.fullmatch(bare):
        return "yes"
    if NO.fullmatch(bare):
        return "no"
    for spell in (as_date, _as_time):
        if spelt := spell(bare, question):
            return spelt
    if number := values.amount(bare, question.scale):
        return number
    if SUBSCRIPTS.fullmatch(bare):
        return re.sub(r"[_{}]", "", bare.translate(_LOWERED))
    bare = _ARTICLE.sub("", bare, count=1) if _ARTICLE.match(bare) else bare
    full = [name for name in question.names if bare in name.split()] if question.want == "name" else []
    if len(full) == 1 and bare != full[0]:
        return full[0]
    kept = [word for word in bare.split() if next(words_of(word), "") not in question.words]  # of "Nile River", Nile
    return " ".join(kept) if question.want == "name" and kept and bare.replace(" ", "").isalpha() else bare


_LOWERED = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
SUBSCRIPTS = re.compile(r"(?=.*[\d₀-₉])(?:\(?[A-Z][a-z]?\)?(?:_?\{?[\d₀-₉]{1,3}\}?)?){1,20}")
"""A chemical formula, its numbers lowered or not."""


def trimmed(answer: str) -> str:
    """An answer without the marks and stops around it."""
    bare = unmarked(answer).strip(" \t\n\"“”'‘’`*_")
    bare = bare[2:-2] if bare.startswith("[[") and bare.endswith("]]") else bare
    bare = re.sub(r"[\s.!,;:。]+$", "", bare) if not re.search(r"\b(?:[A-Z]\.|[ap]\.m\.)$", bare) else bare
    return bare.strip(" \"“”'‘’`*_")


def as_date(text: str, question: Question) -> str | None:
    """The date that a text is, and nothing much else."""
    date = values.date_in(text)
    return date if date and (len(text) <= 30 or question.want == "date") else None


def _as_time(text: str, question: Question) -> str | None:
    return (
        values.time_in(text)
        if len(text) <= 20 and re.match(r"\D{0,8}\d{1,2}[:.h ]?\d{0,2}\s*(?:[ap]\.?m\.?)?", text)
        else None
    )


def fold(text: str) -> str:
    """A label without regard to case, hyphens and underscores."""
    return re.sub(r"[\s_-]+", " ", text.casefold()).strip()


def as_option(text: str, question: Question) -> str | None:
    """The option that a text is, by its label or by what stands for it."""
    folded = fold(trimmed(text))
    if not folded or not question.options:
        return None
    for label, meaning in question.options.items():
        name, meant = fold(label), fold(meaning)
        if folded in (name, meant, f"({name})", f"option {name}"):
            return label
        if meant != name and re.fullmatch(rf"(?:option )?\(?{re.escape(name)}[).:]*\s*{re.escape(meant)}", folded):
            return label
    return None
