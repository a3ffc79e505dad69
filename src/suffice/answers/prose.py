"""Text as it is read: sentences, marks, and numbers, times and dates in one spelling."""

import re
import unicodedata

from suffice.answers.words import WORTH, folded

FENCE = re.compile(r"```[^\n`]*\n?(.*?)\s*```", re.DOTALL)
_STOP = re.compile(
    r"(?<!\b[A-Z])(?<!\b(?:Mr|Dr|vs))(?:\.(?!\s[^\W\d]+ \d{4}\b)|[!?。？！؟।])[\"”’')\]*_]*(?:\s+|$)"
    r"|(?<=[。？！])|\n\s*"
)
"""Where a sentence ends: not after the day of a date."""
_MARKS = re.compile(
    r"\*\*\*?|__|`|^[ \t]*(?:#{1,6}[ \t]+|>[ \t]*|[-*•][ \t]+)|(?<![\w*\\])[*_](?=[^\s*_])|(?<=[^\s*_\\])[*_](?![\w*])"
    r"|\\[()\[\]]|(?<!\\)\$\$?(?=[^\d\s]|[^$\n]*(?<!\\)\$)|(?<=\S)(?<!\\)\$\$?(?!\d)"
    r"|(?<=[\w.,;:!?)。])\s?\[\d{1,3}\](?![(\w])"
    r"|[\u2600-\u27bf\u2b50\u2b55\ufe0f\u200d\U0001f000-\U0001faff]",
    re.MULTILINE,
)
"""Emphasis, headings, bullets, signs of formulas, references, emoji."""
_BOLD = re.compile(r"\*\*([^*\n]{1,120})\*\*|__([^_\n]{1,120})__")


def unfenced(text: str) -> str:
    """Strip a fence around the whole text."""
    fenced = FENCE.fullmatch(text.strip())
    return fenced[1].strip() if fenced and "```" not in fenced[1] else text.strip()


def without_fences(text: str) -> str:
    return FENCE.sub("\n", text)


def unmarked(text: str) -> str:
    """The text without marks.

    >>> unmarked("**So** it is `4 True`, or $x_1$."), unmarked("It costs $5.")
    ('So it is 4 True, or x_1.', 'It costs $5.')
    """
    return _MARKS.sub("", text).strip()


def in_bold(text: str) -> list[str]:
    return [one or other for one, other in _BOLD.findall(text)]


def boxed(text: str) -> str | None:
    r"""What is in the last balanced `\boxed{…}` or `\fbox{…}`."""
    found = None
    opened: list[re.Match[str]] = []
    for token in re.finditer(r"\\(?:boxed|fbox)\s*\{|\\.|[{}]", text, re.DOTALL):
        if token[0].endswith("{") and token[0] != r"\{":
            opened.append(token)
        elif token[0] == "}" and opened:
            start = opened.pop()
            if start[0] != "{":
                found = slice(start.end(), token.start())
    return (text[found].strip() or None) if found else None


def sentences(text: str) -> list[str]:
    """The sentences and lines of a text; each keeps the mark it ends with.

    >>> sentences("It is so. Is it? 是的。对\\nEnd")
    ['It is so.', 'Is it?', '是的。', '对', 'End']
    """
    found, start = [], 0
    for stop in _STOP.finditer(text):
        found.append(text[start : stop.end()].strip())
        start = stop.end()
    found = [one for one in [*found, text[start:].strip()] if one]
    for place in range(len(found) - 2, -1, -1):
        if found[place].rstrip(".").isdigit() and len(found[place]) <= 3:  # "4. Qxf7" is one
            found[place : place + 2] = [f"{found[place]} {found[place + 1]}"]
    return found


def bounded(text: str, most: int) -> str:
    """Cut the middle of a long text."""
    half = most // 2
    return text if len(text) <= most else f"{text[:half]}\n\n{text[-half:]}"


_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)"
NUMBER = re.compile(
    r"(?:(?<![\w.)\]}])[-−+] ?)?\\?\$?(?:\d+ ?(?=\\[dt]?frac))?"
    rf"(?:\\[dt]?frac\{{-?\d+\}}\{{\d+\}}|(?<![A-Za-z0-9_./]){_DIGITS}"
    r"(?:[eE][-+]?\d+\b| ?(?:×|x|\*|\\times|\\cdot) ?10\^(?:\{-?\d+\}|-?\d+)| \d+/\d+(?!\.?\d)| ?/ ?\d+(?!\.?\d))?"
    r"(?![./]?\d))"
    r"(?: ?\\?%| (?:thousand|million|billion|percent)\b)?"
)
_COMMA = re.compile(r"(?<![\d.,])(\d{1,3}(?:[. ]\d{3})+|\d+),(\d{1,2})(?![\d,])")
_POINT = re.compile(r"(?<=\d)[. \u00a0\u202f](?=\d{3}(?!\d))")
_CLOCK = re.compile(
    r"(?P<late>午後|下午|오후)?\s?(?<![\d:.,+−-])(?P<hour>\d{1,2})(?:"
    r"(?:[:h](?P<minutes>\d{2}))?\s?(?P<half>[ap])\.?\s?m\b\.?|[:h](?P<past>\d{2})(?![\d:])"
    r"|\s?[時时点시](?![間间])\s?(?:(?P<signs>\d{1,2})\s?[分분]?|(?P<thirty>半|반))?)"
)
_APART = re.compile(r"(?:\s|(?<=[^\x00-\x7f])|(?=（))[(（][^()（）]*[)）]")
"""Brackets that stand apart: those of O(n) do not."""


def in_digits(text: str, continental: bool = False) -> str:
    """Write numbers with the digits and the decimal point of English.

    >>> in_digits("٤٢ · ４２ · 1.234,50 · 2,4")
    '42 · 42 · 1234.50 · 2.4'
    """
    if not text.isascii():
        text = "".join(str(unicodedata.decimal(one)) if one.isdecimal() else one for one in text)
        text = text.replace("٫", ".").replace("٬", ",").replace("，", ",").replace("％", "%")
    text = _COMMA.sub(lambda found: f"{found[1].replace('.', '').replace(' ', '')}.{found[2]}", text)
    return _POINT.sub("", text) if continental else text


def plain_number(number: str) -> str:
    """Strip the signs of money, and write an ASCII minus."""
    return number.replace("−", "-").replace("\\$", "").replace("$", "").strip()


def numbers(text: str) -> list[str]:
    """Return the numbers of a text, else those in words."""
    found = [plain_number(number[0]) for number in NUMBER.finditer(in_digits(text))]
    return found or [str(WORTH[word]) for word in folded(text).split() if word in WORTH]


def clocks(text: str) -> list[str]:
    """Return the times of day, by the 24 hour clock where am or pm is said.

    >>> clocks("from 9:40 to 1:15 p.m."), clocks("14h24"), clocks("3 hours"), clocks("午後4時半")
    (['9:40', '13:15'], ['14:24'], [], ['16:30'])
    """
    return [_time(found) for found in _CLOCK.finditer(in_digits(text))]


def _time(found: re.Match[str]) -> str:
    hour, late = int(found["hour"]), found["late"] or (found["half"] or "").lower() == "p"
    minutes = found["minutes"] or found["past"] or found["signs"] or ("30" if found["thirty"] else "00")
    return f"{hour % 12 + 12 * bool(late) if late or found['half'] else hour}:{minutes:0>2}"


def without_asides(text: str) -> str:
    """Strip what is in brackets, unless nothing is left."""
    return _APART.sub("", text).strip() or text


_DATE = re.compile(
    r"\b\d{1,2}(?:\.|st|nd|rd|th)?(?: of| de)? [^\W\d]{3,12},?(?: de)? \d{4}\b"
    r"|[^\W\d]{3,12} \d{1,2}(?:st|nd|rd|th)?, \d{4}\b"
    r"|\b\d{4}-\d\d-\d\d\b|\b\d{1,2}[./]\d{1,2}[./]\d{4}\b|\d{4}年\d{1,2}月\d{1,2}日"
)


def dates(text: str) -> list[str]:
    """Return the dates in a text."""
    return [date(found[0].replace(" of ", " ").replace(" de ", " ")) or found[0] for found in _DATE.finditer(text)]


def date(text: str) -> str | None:
    """Write a date with its day first and its year last, in any language.

    >>> date("July 20th, 1969"), date("20 juillet 1969"), date("4 True")
    ('20 july 1969', '20 juillet 1969', None)
    """
    parts = [one[:-2] if one[:-2].isdigit() and one[-2:].isalpha() else one for one in in_digits(folded(text)).split()]
    years, days = [one for one in parts if one.isdigit() and len(one) == 4], [one for one in parts if one.isdigit()]
    months = [one for one in parts if not one.isdigit() and len(one) > 2]
    if len(years) != 1 or len(days) != 2 or len(months) != 1 or len(parts) > 5:
        return None
    return f"{int(next(one for one in days if one not in years))} {months[0]} {years[0]}"
