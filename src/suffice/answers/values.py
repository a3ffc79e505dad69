"""One spelling for what answers say in many: amounts with a unit, numbers in words, dates and times of day."""

import re

from suffice.answers.stated import NUMBER, plain_number

_MONTHS = (
    ("january", "jan", "januar", "janvier", "enero"),
    ("february", "feb", "februar", "février", "febrero"),
    ("march", "mar", "märz", "mars", "marzo"),
    ("april", "apr", "avril", "abril"),
    ("may", "mai", "mayo"),
    ("june", "jun", "juni", "juin", "junio"),
    ("july", "jul", "juli", "juillet", "julio"),
    ("august", "aug", "août", "agosto"),
    ("september", "sep", "sept", "septembre", "septiembre"),
    ("october", "oct", "oktober", "octobre", "octubre"),
    ("november", "nov", "novembre", "noviembre"),
    ("december", "dec", "dezember", "décembre", "diciembre"),
)
_MONTH = {name: place for place, names in enumerate(_MONTHS, 1) for name in names}
_NAME = "|".join(sorted(_MONTH, key=len, reverse=True))
_DATE = re.compile(
    rf"\b(?P<m1>{_NAME})\.? (?P<d1>\d{{1,2}})(?:st|nd|rd|th)?(?:,? (?P<y1>\d{{4}}))?\b"
    rf"|\b(?P<d2>\d{{1,2}})(?:st|nd|rd|th|\.)?(?: of| de)? (?P<m2>{_NAME})\.?,?(?: (?:de )?(?P<y2>\d{{4}}))?\b"
    r"|\b(?P<y3>\d{4})-(?P<m3>\d{2})-(?P<d3>\d{2})\b",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"\b(?P<h1>\d{1,2})(?:[:.](?P<m1>\d{2}))? ?(?P<half>[ap])\.? ?m\b\.?|\b(?P<h2>[01]?\d|"
    r"2[0-3])[:h](?P<m2>[0-5]\d)(?![\d:])",
    re.IGNORECASE,
)

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_FOREIGN = (  # two to ten; not those that are English words too
    "zwei drei vier fünf sechs sieben acht neun zehn",
    "deux trois quatre cinq six sept huit neuf dix",
    "dos tres cuatro cinco seis siete ocho nueve diez",
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_WORTH = {word: value for value, word in enumerate(_SMALL.split())}
_WORTH |= {word: 10 * value for value, word in enumerate(_TENS.split(), 2)}
_WORTH |= {word: value for words in _FOREIGN for value, word in enumerate(words.split(), 2)}
_WORD = "|".join(sorted(_WORTH, key=len, reverse=True))
_TEN = "|".join(_TENS.split())
_IN_WORDS = re.compile(
    rf"(?:(?P<hundreds>{_WORD}|a) hundred(?: and)? ?)?(?P<tens>{_TEN})?[- ]?(?P<ones>{_WORD})?(?![\w-])",
    re.IGNORECASE,
)

_ABOUT = (
    r"(?:(?:about|approximately|approx\.?|around|roughly|exactly|nearly|almost|only|just|a total of|in total|total of|"
    r"precisely|ca\.|etwa|environ|unos|aproximadamente)\s+|[~≈≃∼=]\s*)*"
)
_UNIT = r"(?:[^\W\d_]\.?|[°²³µ€£¥$₹/'’·^-]|\\text\{[^{}]*\})+"
_AMOUNT = re.compile(rf"{_ABOUT}(?P<currency>[€£¥₹]|US\$|USD |EUR |Rs\.? ?)?\s*(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_UNITS = re.compile(rf"\s*(?:{_UNIT}(?:\s+{_UNIT}){{0,4}})?\s*(?:\([^()]*\)|[:–—]\s[^=]*|[,;]\s[^\d=]*)?[.!]*\s*")
_OUT_OF = re.compile(r"(\d+(?:\.\d+)?)\s*(?:/|out of|of|von|sur|de)\s*(\d+)\b", re.IGNORECASE)


def date_in(text: str) -> str | None:
    """The first date of a text, as 1969-07-20, or as 07-20 where it names no year."""
    found = _DATE.search(text)
    if not found:
        return None
    part = found.groupdict()
    year = part["y1"] or part["y2"] or part["y3"]
    named = part["m1"] or part["m2"]
    month = _MONTH[named.lower()] if named else int(part["m3"])
    day = int(part["d1"] or part["d2"] or part["d3"])
    return f"{year}-{month:02}-{day:02}" if year else f"{month:02}-{day:02}"


def dates_in(text: str) -> list[str]:
    """The dates of a text, each as `date_in` spells it."""
    return [date for found in _DATE.finditer(text[:4000]) if (date := date_in(found[0]))]


def time_in(text: str, last: bool = False) -> str | None:
    """The first time of day in a text, or the last, by the 24 hour clock where it says which half of the day."""
    found = list(_TIME.finditer(text[:2000]))
    if not found:
        return "12:00" if re.search(r"\bnoon\b", text, re.IGNORECASE) else None
    part = found[-1 if last else 0].groupdict()
    hour = int(part["h1"] or part["h2"])
    if part["half"]:
        hour = hour % 12 + 12 * (part["half"].lower() == "p")
    return f"{hour}:{part['m1'] or part['m2'] or '00'}"


_HALVES = re.compile(rf"\b({_WORD}) and (?:a|one) half\b", re.IGNORECASE)


def in_decimals(text: str) -> str:
    """The text with its halves as decimals: "four and a half hours" is 4.5 hours."""
    return _HALVES.sub(lambda found: f"{_WORTH[found[1].lower()]}.5", text)


_COINS = re.compile(r"(?<![\d.$€£])(\d{1,4})\s?(?:cents?\b|¢|pence\b)", re.IGNORECASE)
_SPOKEN_COINS = re.compile(rf"\b({_WORD})(?=\s(?:cents?|pence)\b)", re.IGNORECASE)


def in_whole_money(text: str) -> str:
    """The text with cents as parts of a dollar.

    >>> in_whole_money("10 cents, or ten cents")
    '$0.10, or $0.10'
    """
    text = _SPOKEN_COINS.sub(lambda found: str(_WORTH[found[1].lower()]), text)
    return _COINS.sub(lambda found: f"${int(found[1]) / 100:.2f}", text)


def number_in_words(text: str) -> tuple[int, int] | None:
    """The number that a text begins with in words, and where it ends: "seventy-two clips" is (72, 11)."""
    found = _IN_WORDS.match(text)
    if not found or not found[0].strip():
        return None
    hundreds, tens, ones = (found[name] for name in ("hundreds", "tens", "ones"))
    if not (hundreds or tens or ones) or (tens and ones and _WORTH[ones.lower()] > 9):
        return None
    worth = {**_WORTH, "a": 1}
    value = 100 * worth[hundreds.lower()] if hundreds else 0
    value += sum(worth[part.lower()] for part in (tens, ones) if part)
    return value, found.end()


def amount(text: str, scale: str | None = None, longest: int = 6) -> str | None:
    """The number of a text that is nothing but an amount: "about 72 clips", "$18.00", "4 out of 5".

    >>> amount("**72** clips"), amount("seventy-two"), amount("£1,250.50 per month"), amount("Apollo 11")
    (None, '72', '1,250.50', None)
    """
    found = _AMOUNT.match(text.strip())
    rest = found["rest"] if found else text
    rest = re.sub(r"(?<=\d),(?=\d{1,2}(?!\d))", ".", rest) if re.match(r"\d+,\d{1,2}(?!\d|,)", rest) else rest
    if len(rest.split()) > longest:
        return None
    graded = _OUT_OF.match(rest)
    if graded and (not re.search(r"/", graded[0]) or graded[2] == scale) and _UNITS.fullmatch(rest, graded.end()):
        return graded[1]
    number = NUMBER.match(rest)
    if number and _UNITS.fullmatch(rest, number.end()) and not _joined(rest, number.end()):
        return plain_number(number[0])
    spoken = number_in_words(rest)
    if spoken and _UNITS.fullmatch(rest, spoken[1]):
        return str(spoken[0])
    return None


_JOINED = re.compile(r"(?:st|nd|rd|th)\b|-[A-Z]|[abceintxyzπ]\b|(?![CFKVWNJLM]\b)[A-Z]\b|[√^({\\]")


def _joined(text: str, end: int) -> bool:
    """Whether what follows a number is a part of a name or a formula: 3M, 7-Eleven, 5th, 2x."""
    return _JOINED.match(text, end) is not None
