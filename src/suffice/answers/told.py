"""What a sentence adds to the words of the question: a name, a date, a time."""

import re
from collections.abc import Callable

from suffice.answers import foreign, prose, values
from suffice.answers.prose import in_bold, sentences, unmarked, words_of
from suffice.answers.requests import Question
from suffice.answers.results import SO, last_clause
from suffice.answers.stated import NUMBER, plain_number
from suffice.answers.verdicts import SMALL, known
from suffice.answers.whole import LIST, MOST_WORDS

_DAYS = re.compile(r"\b((?:mon|tues|wednes|thurs|fri|satur|sun)day)\b", re.IGNORECASE)
_MONTHS = re.compile(r"\b(January|February|March|April|May|June|July|August|September|October|November|December)\b")
_TOLD_AT_MOST = 120
_TOKEN = re.compile(r"[^\W_][\w.'’&-]*")


_SHOWN = re.compile(
    r"[^\n`]{1,120}:\s*```\w*\n([^\n`]{1,60})\n```|(?!.*\d[.)] )[^\n`]{1,120}:\s*\n+([^\n`*:-][^\n`:]{0,60})$"
)
"""A sentence that announces what stands in the block or line after it."""


_QUOTED = re.compile(r'"[^"\n]{20,300}"|“[^”\n]{20,300}”')


def told(text: str, question: Question) -> str | None:
    """What the first or the last sentence adds to the words of the question."""
    if foreign.is_other_script(text):
        return foreign.said(text) if question.want in ("name", "number") else None
    shown = _SHOWN.match(text) if question.want in ("name", "number", "any") else None
    if shown:
        return shown[1] or shown[2]
    text = _QUOTED.sub('""', text)  # what is quoted is the question's
    said = sentences(text)
    if not said or prose.has_code(text) or len(text.split()) > _TOLD_AT_MOST:
        return None
    places = [said[0], said[-1]] if len(said) > 1 else said
    if prose.is_laid_out(text):  # only what it comes to in the end is not one part of it among others
        ends = [one for one in said[-1:] if SO.match(unmarked(one))]
        places = said = ends or [one for one in said[:1] if _repeats(one, question)]
        if not said:
            return None
    if question.want == "time":
        places = [said[-1], said[0]]
        return next(
            (
                found
                for one in places
                if (found := _bold_or(values.time_in, one) or values.time_in(unmarked(one), True))
            ),
            None,
        )
    if question.want == "year":
        return next((found for one in places if (found := _year_told(one, question))), None)
    if question.want == "date":
        places = [one for one in places if not one.rstrip("*_ ").endswith(":")]
        return next((found for one in places if (found := _date_told(one, question))), None)
    if question.want == "name":
        if addresses := _ADDRESS.findall(text):
            return _one_address(addresses, said)
        places = said[:1] + [one for one in said[1:][-1:] if SO.match(unmarked(one)) or in_bold(one)]
        found = next((found for one in places if (found := _name_told(one, question))), None)
        return _in_full(found, text) if found and "who" in question.words else found
    return None


def _in_full(name: str, text: str) -> str:
    """A name with what the text elsewhere puts before it: "Picasso … Pablo Picasso"."""
    if not name.isalpha() or not name[0].isupper():
        return name
    full = {
        one for one in re.findall(rf"\b[A-Z][^\W\d_]+ {re.escape(name)}\b", text) if one.split()[0].lower() not in SMALL
    }
    return full.pop() if len(full) == 1 else name


_FEWEST_REPEATED = 2


def _repeats(sentence: str, question: Question) -> bool:
    """Whether a sentence says the question's words again, as what answers it in full does."""
    said = {word for word in words_of(unmarked(sentence)) if word not in SMALL and known(word, question)}
    return len(said) >= _FEWEST_REPEATED and not sentence.rstrip("*_ ").endswith(":")


_ADDRESS = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,6}")


def _one_address(addresses: list[str], said: list[str]) -> str | None:
    """The only address, or the only one of the first sentence, outside brackets."""
    first = _ADDRESS.findall(re.sub(r"\([^()]*\)", "", said[0]))
    for found in (set(addresses), set(first)):
        if len(found) == 1:
            return found.pop().rstrip(".,")
    return None


def _bold_or(read: Callable[[str], str | None], sentence: str) -> str | None:
    found = [one for one in map(read, in_bold(sentence)) if one]
    return found[-1] if found else None


def _date_told(sentence: str, question: Question) -> str | None:
    bare = unmarked(sentence)
    dates = [date for date in values.dates_in(last_clause(bare)) if not _is_given(date, question)]
    if date := _bold_or(values.date_in, sentence) or (dates[-1] if dates else None):
        return date
    said = {day.capitalize() for day in _DAYS.findall(bare)}
    days = {day for day in said if day.lower() not in question.words}
    if not days and not re.match(r"\W*(?:if|today|from)\b", bare, re.IGNORECASE):
        days = said
    if said:
        return days.pop() if len(days) == 1 else None
    months = [month for month in _MONTHS.findall(bare) if month.lower() not in question.words]
    if months and (len(set(months)) == 1 or SO.match(bare)):
        return str(months[-1])
    return _year_told(sentence, question)


def _is_given(date: str, question: Question) -> bool:
    """Whether a date is one of the question's, with its year or without."""
    return any(
        date[-5:] == given[-5:] and (len(date) == 5 or len(given) == 5 or date == given) for given in question.dates
    )


def _year_told(sentence: str, question: Question) -> str | None:
    """The year of a sentence: in bold, or the only one, or the one after "in"."""
    for part in (*in_bold(sentence), unmarked(sentence)):
        years = [
            year
            for year in re.findall(r"(?<![\d.,$€])[12]\d{3}(?!\d|%|,\d)|\b\d{2,4}(?= (?:BC|AD|CE))", part)
            if year not in question.numbers
        ]
        if len(set(years)) == 1:
            return str(years[0])
    named: list[str] = re.findall(r"\b(?:in|was|year) ([12]\d{3})\b", unmarked(sentence))
    return named[0] if len(set(named)) == 1 else None


_REASON = re.compile(
    r"(?<=\w)(?:,? (?:which|because|since|where|although|though|and (?:it|is|was|not)|not|meaning)\b|, as\b|;| \(|"
    r" [–—-] )"
)
_COURTESY = re.compile(
    r"^\W*(?:oh(?: no)?|thanks|thank you|well|hm+|in short|tl;?dr|short answer|legally|basically|actually|indeed|"
    r"obviously|"
    r"(?:it|this|that) (?:looks|seems|appears|sounds)(?: like| to be)?|i (?:think|believe|guess)(?: it(?:['’]s| is))?|"
    r"(?:it|this|that|the code|the program|the script) (?:logs|prints|outputs|returns|shows|displays)|you (?:should|"
    r"would|"
    r"will)|you['’]ll)\b[,:.!]*\s*",
    re.IGNORECASE,
)
"""What stands before a name without being a part of it."""
_SELF = re.compile(r"\b(?:i|i['’]\w+|you|your|my|me|please|let['’]s)\b", re.IGNORECASE)


_SETTING = re.compile(
    r"(?:since|because|as|although|while|given|after|when|in|on|according to|"
    r"based on)\b[^,]{1,80}, (?=\S)",
    re.IGNORECASE,
)


def _without_setting(sentence: str) -> str:
    setting = _SETTING.match(sentence)
    if not setting:
        return sentence
    rest = sentence[setting.end() :]
    return rest.partition(", ")[2] if rest.startswith("and ") and ", " in rest else rest


_BY = re.compile(
    r"\b(?:was|were|is|are|been)\b[^.]{0,80}?\bby (?:(?:[a-z]+|"
    r"[A-Z][a-z]+(?= [a-z])) ){0,4}([A-Z][^\W\d_]+(?: [A-Z][\w.'’-]*)+)"
)


def _name_told(sentence: str, question: Question) -> str | None:
    """The name in a sentence that answers: marked, before the verb, or after it."""
    if sentence.rstrip("*_ ").endswith(":"):
        return None
    first: list[str] = LIST.findall(_REASON.split(unmarked(sentence))[0])
    if len(set(first)) == 1 or (first and "=" in sentence):
        return first[-1]
    marked = in_bold(sentence) or re.findall(r"`([^`\n]{1,60})`", sentence)
    marked = [span for span in marked if len(span.split()) <= MOST_WORDS and _new_words(span, question)]
    if len(marked) == 1:
        return marked[0].rstrip(":")
    bare = re.sub(r" you (?:provided|gave|shared|sent|quoted)\b", "", unmarked(sentence))
    bare = _COURTESY.sub("", bare)
    if "who" in question.words and (by := _BY.search(bare)):
        return by[1]
    so = re.search(r", so (?:it(?:['’]s| is| prints| logs| outputs| returns) )?(\S+(?: \S+){0,3})$", bare)
    bare = so[1] if so else _REASON.split(last_clause(_without_setting(bare)))[0]
    if len(bare.split()) > 30 or sentence.endswith(":") or _SELF.search(bare):
        return None
    head = bare.partition(",")[0]
    tells = head != bare and re.search(r"\s(?:is|was|are|were|est|ist|es)\b|^[A-Z]\S*(?: [A-Z]\S*)*$", head)
    return (_name_in(head, question) if tells else None) or _name_in(bare, question)


def _name_in(clause: str, question: Question) -> str | None:
    spans = _spans(clause, question)
    if not spans:
        return None
    coded = [span[2] for span in spans if re.search(r"\d", span[2])]
    if len(coded) == 1 and question.words & _CODES:
        return coded[0]
    start, end, first = spans[0]
    subject = re.match(r"[A-Z]\S*(?: [A-Z]\S*)*(?= [a-z])", first)
    if start == 0 and subject and "who" in question.words:  # "Priya owns it"
        return subject[0]
    after = next(iter(words_of(clause[end:])), "")
    if len(spans) == 1 and start == 0 and (_NO_NAME.fullmatch(first) or after in ("for", "he", "she", "you", "they")):
        return None
    proper = [span for span in spans if all(word[0].isupper() or word.lower() in SMALL for word in span[2].split())]
    if start == 0 and proper[:1] == spans[:1] and (not after or after in SMALL or known(after, question)):
        return first
    by = re.search(r"\bby (?=[A-Z])", clause)
    if by and (named := next((span[2] for span in spans if span[0] >= by.end()), None)):
        return named
    later = [span for span in proper if span[0] > 0]
    if len(later) == 1:
        return later[0][2]
    numbers = {plain_number(number[0]) for number in NUMBER.finditer(clause)} - question.numbers
    if not later and len(numbers) == 1:
        return numbers.pop()
    return first if len(spans) == 1 and len(first.split()) <= MOST_WORDS else None


_CODES = frozenset(("number", "code", "id", "password", "pin", "reference", "sku"))
_NO_NAME = re.compile(
    r"\w+ly|claro|por supuesto|hola|oui|bonjour|salut|natürlich|gerne|klar|hallo|certo|ciao|sure|thanks|note|tip|"
    r"great|good|here|let|example",
    re.IGNORECASE,
)


def _new_words(text: str, question: Question) -> bool:
    return any(word not in SMALL and word not in question.words for word in words_of(text))


def _spans(sentence: str, question: Question) -> list[tuple[int, int, str]]:
    """The runs of words that are neither the question's nor small: where each begins and ends, and what it is."""
    spans: list[tuple[int, int]] = []
    for token in _TOKEN.finditer(sentence):
        word = next(words_of(token[0]), "")
        if not word or word in SMALL or word in question.words:
            continue
        if spans and re.fullmatch(
            r"\s+(?:(?:of|the|de|da|van|von|di|du|la|le|"
            r"and)\s+)*",
            sentence[spans[-1][1] : token.start()],
        ):
            joins = sentence[spans[-1][1] : token.start()].strip()
            if not joins or (token[0][0].isupper() and sentence[spans[-1][0]].isupper()):
                spans[-1] = (spans[-1][0], token.end())
                continue
        spans.append((token.start(), token.end()))
    return [(start, end, sentence[start:end].rstrip(".'’-")) for start, end in spans]
