"""From an answer as it was written to its canonical form: equal forms are the same answer."""

import re
import unicodedata
from fractions import Fraction
from functools import lru_cache

from suffice.answers.brackets import split

LONGEST = 1000
"""Characters up to which an answer is read as a formula; longer ones are compared as they stand."""

_DEEPEST = 20

# Before each of these, no backslash: \\ is the end of a row.
_SPELLINGS = [
    (r"(?<!\\)\\(?:left|right)\s*\.|(?<!\\)\\(?:left|right|[bB]igg?[lr]?|displaystyle|limits)(?![A-Za-z])", ""),
    (r"(?<!\\)\\!", ""),
    (r"(?<=\d)(?:\{,\}|(?<!\\)\\,)(?=\d{3}(?!\d))", ","),
    (r"(?<!\\)\\[,;: ]|\\q?quad(?![A-Za-z])|~", " "),
    (r"(?<!\\)\\[()\[\]]|(?<!\\)\\?\$", ""),
    (r"\\[dtc]frac(?![A-Za-z])", r"\\frac"),
    (r"\\(?:text(?:bf|it|rm|sf|tt|normal)?|math(?:rm|bf|it|sf)|mbox|operatorname)\s*\{([^{}]*)\}", r" \1 "),
    (r"\^\s*\{?\s*\\(?:circ|degree)\s*\}?|\\degree(?![A-Za-z])|°|(?<=\d)\s*degrees?\b", ""),
    (r"(?<!\\)\\%|(?<=\d)\s*per ?cent\b", "%"),
    (r"\\(le|ge|ne)q(?![A-Za-z])", r"\\\1"),
    (r"\\times(?![A-Za-z])|(?<=\S)\s*\*\s*(?=\S)|×|(?<=\d)\s*[xX]\s*(?=10\^)", r"\\cdot "),
    (r"\\lbrace(?![A-Za-z])", r"\\{"),
    (r"\\rbrace(?![A-Za-z])", r"\\}"),
    (r"\+\s*\\infty(?![A-Za-z])|∞|\\infin(?![A-Za-z])", r"\\infty "),
    (r"\\varnothing(?![A-Za-z])|∅|\\\{\s*\\\}", r"\\emptyset "),
    (r"^\s*(?:\\approx|≈|\\sim)(?![A-Za-z])", ""),
    (r"\\frac\s*(\d)\s*(\d)", r"\\frac{\1}{\2}"),
    (r"\\frac\s*(\d)\s*\{", r"\\frac{\1}{"),
    (r"(\\frac\s*\{[^{}]*\})\s*(\d)", r"\1{\2}"),
    (r"\\sqrt\s*(\w)", r"\\sqrt{\1}"),
    (r"([\^_])\s*\{\s*(\w)\s*\}", r"\1\2"),
]
_SPELLINGS_COMPILED = [(re.compile(pattern, re.DOTALL), same) for pattern, same in _SPELLINGS]

_CHARACTERS = str.maketrans({
    "−": "-", "–": "-", "π": r"\pi ", "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ", "∪": r"\cup ", "’": "'", "‘": "'",
    "\u200b": "", "\u200c": "", "\u200d": "", "\ufeff": "",
})  # fmt: skip
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n")
_LOWERED = str.maketrans("₀₁₂₃₄₅₆₇₈₉₊₋ₙ", "0123456789+-n")

_NAME = r"(?:\\[A-Za-z]+|[A-Za-z]{1,2})(?:_\w|_\{\w+\}|\([A-Za-z]\))?"
_NAMED = re.compile(rf"\s*(?!\\(?:frac|sqrt|pi|infty|emptyset)){_NAME}\s*(?:=|\\in(?![A-Za-z]))\s*(?=\S)")
_SEVERAL = re.compile(r"\s*,?\s+(?:or|and)\s+|\s*,\s*")
_RELATIONS = re.compile(r"[=<>]|\\(?:le|ge|ne|in)(?![A-Za-z])")
_WORDS = re.compile(r"[^\W\d_]+(?:[\s'-]+[^\W\d_]+)*")
_MIXED = re.compile(r"(?<![\d.,^_}])(\d+) ?\\frac\{(\d+)\}\{(\d+)\}")
_WITH_UNIT = re.compile(r"(.*\d[)}]?)\s*([^\W\d_][^\W\d_ .]*\.?(?: [^\W\d_]+)*)")


@lru_cache(maxsize=4096)
def normalise(text: str) -> str | None:
    r"""The canonical form of an answer, or None where nothing is left of it.

    >>> [normalise(text) for text in (r"\dfrac{1}{2}", "0.50", "1,234", r"x = \text{Yes}", "(1, 2)")]
    ['0.5', '0.5', '1234', 'yes', '(1,2)']
    """
    if len(text) > LONGEST:
        return " ".join(text.split())
    text = _bare(_in_ascii(text))
    for pattern, same in _SPELLINGS_COMPILED:
        text = pattern.sub(same, text)
    return _form(_bare(text), 0) or None


def _in_ascii(text: str) -> str:
    """Characters that write what LaTeX and plain text can: fractions, raised and lowered digits, signs."""
    text = re.sub("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ]+", lambda run: f"^{{{run[0].translate(_RAISED)}}}", text)
    text = re.sub("[₀₁₂₃₄₅₆₇₈₉₊₋ₙ]+", lambda run: f"_{{{run[0].translate(_LOWERED)}}}", text)
    text = re.sub(r"(?<=\d)(?=[¼-¾⅐-⅞])", " ", text)
    return unicodedata.normalize("NFKC", text.translate(_CHARACTERS)).replace("⁄", "/").translate(_CHARACTERS)


def _bare(text: str) -> str:
    """Without the punctuation, quotes and marks that stand around an answer, and the box that may be in another."""
    before = None
    while text != before:
        before = text
        text = text.strip().strip("`\"“”'*").rstrip(".,;:").strip()
        text = re.sub(r"(?<=[^\W\d_]{2})!+$", "", text)  # an exclamation, not a factorial
        wrapped = re.fullmatch(r"\\(?:boxed|fbox)\s*\{(.*)\}|\$(.*)\$|\{([^{}]*)\}", text, re.DOTALL)
        if wrapped:
            text = next(part for part in wrapped.groups() if part is not None)
    return text


def _form(text: str, depth: int) -> str:
    """The form of a whole answer, or of a part in brackets."""
    text = " ".join(_bare(text).split())
    parts = _SEVERAL.split(text)
    if len(parts) > 1 and all(_NAMED.match(part) for part in parts):  # "x = 1 or x = 2"
        return ",".join(_form(part, depth + 1) for part in parts) if depth < _DEEPEST else text
    named = _NAMED.match(text)
    if named and not _RELATIONS.search(text, named.end()):
        text = text[named.end() :]
    if _WORDS.fullmatch(text):
        return text.lower() if len(text) > 2 or text.lower() == "no" else text
    text = _MIXED.sub(_improper, text)
    value = _value(text.removesuffix("%").rstrip())
    if value is not None:
        return _shown(value) + "%" * text.endswith("%")
    with_unit = _WITH_UNIT.fullmatch(text)
    value = _value(with_unit[1]) if with_unit else None
    if with_unit and value is not None:
        return _shown(value) + with_unit[2]
    if text.startswith(r"\pm"):
        value = _value(text.removeprefix(r"\pm").strip())
        if value:
            return f"{_shown(-abs(value))},{_shown(abs(value))}"
    opens, parts, closes = split(text)
    if opens and depth < _DEEPEST:
        forms = [_form(part, depth + 1) for part in parts]
        if opens == r"\{" and closes == r"\}":
            forms = sorted(set(forms))
        elif len(forms) == 1 and (opens, closes) == ("(", ")"):
            return forms[0]
        return opens + ",".join(forms) + closes
    text = re.sub(r"(\\[A-Za-z]+) (?![A-Za-z])", r"\1", text)
    return re.sub(r"(?<=\d) (?=[^\W\d_])|(?<!\w) | (?!\w)", "", text)


def _improper(mixed: re.Match[str]) -> str:
    r"""2\frac{1}{2} as one fraction; 2\frac{3}{2} is a product, and stays."""
    whole, top, bottom = (int(part) for part in mixed.groups())
    return rf"\frac{{{whole * bottom + top}}}{{{bottom}}}" if top < bottom else mixed[0]


_DECIMAL = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d*)?|\d{1,3}(?: \d{3})+|\d+(?:\.\d*)?|\.\d+)"
_EXPONENT = r"(?:[eE]| ?\\cdot ?10 ?\^)(?P<e>[-+]?\d{1,2}|\{ ?[-+]?\d{1,2} ?\})"
_VALUE = re.compile(
    rf"(?P<sign>[-+]?) ?(?:(?P<whole>\d+) (?P<n1>\d+) ?/ ?(?P<d1>\d+)"
    rf"|\\frac ?\{{ ?(?P<n2>-?{_DECIMAL}) ?\}} ?\{{ ?(?P<d2>-?{_DECIMAL}) ?\}}"
    rf"|(?P<n3>{_DECIMAL}) ?/ ?(?P<d3>{_DECIMAL})"
    rf"|(?P<start>\d*)\.(?P<fixed>\d*)\\overline ?\{{?(?P<again>\d+)\}}?"
    rf"|(?P<n4>{_DECIMAL})(?:{_EXPONENT}| (?P<word>thousand|million|billion))?)"
)
_WORTH = {"thousand": 10**3, "million": 10**6, "billion": 10**9}


def _value(text: str) -> Fraction | None:
    """The number that a text writes, exactly."""
    found = _VALUE.fullmatch(text)
    if not found:
        return None
    part = {name: re.sub("[, ]", "", value) for name, value in found.groupdict().items() if value is not None}
    if "again" in part:
        return _repeating(part)
    top = next(Fraction(part[name]) for name in ("n1", "n2", "n3", "n4") if name in part)
    bottom = next((Fraction(part[name]) for name in ("d1", "d2", "d3") if name in part), Fraction(1))
    if bottom == 0:
        return None
    value = Fraction(part.get("whole", "0")) + top / bottom
    value *= Fraction(10) ** int(part.get("e", "0").strip("{} ")) * _WORTH.get(part.get("word", ""), 1)
    return -value if part["sign"] == "-" else value


def _repeating(part: dict[str, str]) -> Fraction:
    """0.1666… and the like."""
    fixed, again = part["fixed"], part["again"]
    value = Fraction(int(part["start"] + fixed or "0"), 10 ** len(fixed))
    value += Fraction(int(again), 10 ** len(fixed) * (10 ** len(again) - 1))
    return -value if part["sign"] == "-" else value


_MOST_PLACES = 20


def _shown(value: Fraction) -> str:
    """One spelling for each number: a decimal where that is short and exact, else a fraction in lowest terms."""
    if 10**_MOST_PLACES % value.denominator:
        return f"{value.numerator}/{value.denominator}"
    places = next(places for places in range(_MOST_PLACES + 1) if not 10**places % value.denominator)
    digits = str(abs(value.numerator) * 10**places // value.denominator).zfill(places + 1)
    whole, rest = digits[: len(digits) - places], digits[len(digits) - places :]
    return "-" * (value < 0) + whole + (f".{rest}" if rest else "")
