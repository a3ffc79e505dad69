"""Text as it is read: sentences, marks, and numbers in one spelling."""

import re
import unicodedata

from suffice.json_values import FENCE

MAX_WORDS_AROUND = 30
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
    """Return what the only fence of a text holds if little surrounds it, else the text."""
    fenced = FENCE.findall(text)
    is_wrapped = len(fenced) == 1 and len(without_fences(text).split()) <= MAX_WORDS_AROUND
    return str(fenced[0]).strip() if is_wrapped else text.strip()


def without_fences(text: str) -> str:
    return FENCE.sub("\n", text)


def unmarked(text: str) -> str:
    """The text without marks."""
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
    """The sentences and lines of a text; each keeps the mark it ends with."""
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
STAMP = re.compile(
    r"\d{4}-\d\d-\d\d|(?<![\d./])\d{1,2}[./]\d{1,2}[./](?:\d{4}|\d\d)(?![\d./]\d)"
    r"|(?<!\d)\d{1,2}[:h]\d\d(?!\d)(?:\s?[ap]\.?m\b)?"
)  # a date, a time of day
_COMMA = re.compile(r"(?<![\d.,])(\d{1,3}(?:[. ]\d{3})+|\d+),(\d{1,2})(?![\d,])")
_APART = re.compile(r"(?:\s|(?<=[^\x00-\x7f])|(?=（))[(（][^()（）]*[)）]")
"""Brackets that stand apart: those of O(n) do not."""


def in_digits(text: str) -> str:
    """Write numbers with the digits and the decimal point of English."""
    if not text.isascii():
        text = "".join(str(unicodedata.decimal(one)) if one.isdecimal() else one for one in text)
        text = text.replace("٫", ".").replace("٬", ",").replace("，", ",").replace("％", "%")
    return _COMMA.sub(lambda found: f"{found[1].replace('.', '').replace(' ', '')}.{found[2]}", text)


def plain_number(number: str) -> str:
    """Strip the signs of money, and write an ASCII minus."""
    return number.replace("−", "-").replace("\\$", "").replace("$", "").strip()


def numbers(text: str) -> list[str]:
    return [plain_number(number[0]) for number in NUMBER.finditer(in_digits(text))]


def without_asides(text: str) -> str:
    """Strip what is in brackets, unless nothing is left."""
    return _APART.sub("", text).strip() or text
