"""From an answer as it was written to its canonical form: equal forms are the same answer."""

import re
import unicodedata
from fractions import Fraction
from functools import lru_cache
from typing import Any

OPENING, CLOSING = ("(", "[", r"\{"), (")", "]", r"\}")


def split(text: str) -> tuple[str, list[str], str]:
    """Return the opening bracket, the parts between commas, and the closing one."""
    tokens = re.findall(r"\\.|.", text, re.DOTALL)
    if len(tokens) > 2 and tokens[0] in OPENING and tokens[-1] in CLOSING:
        parts = _between_commas(tokens[1:-1])
        if parts:
            return tokens[0], parts, tokens[-1]
    return "", _between_commas(tokens) or [text], ""


def _between_commas(tokens: list[str]) -> list[str]:
    """Split at commas outside brackets; nothing where brackets don't pair."""
    parts, depth = [""], 0
    for token in tokens:
        depth += (token in (*OPENING, "{")) - (token in (*CLOSING, "}"))
        if depth < 0:
            return []
        if token == "," and depth == 0:  # noqa: S105
            parts.append("")
        else:
            parts[-1] += token
    return parts if depth == 0 else []


def structure(text: str) -> Any:
    """Split recursively, as [opening, parts, closing]."""
    opens, parts, closes = split(text)
    if not opens and len(parts) == 1:
        return text
    return [opens, [structure(part) for part in parts], closes]


LONGEST = 1000  # characters of a formula

_DEEPEST = 20

# Before each of these, no backslash: \\ is the end of a row.
_GONE = re.compile(
    r"(?<!\\)\\(?:left|right)\s*\.|(?<!\\)\\(?:left|right|[bB]igg?[lr]?|displaystyle|limits)(?![A-Za-z])"
    r"|(?<!\\)\\[!()\[\]]|(?<!\\)\\?\$|\^\s*\{?\s*\\(?:circ|degree)\s*\}?|\\degree(?![A-Za-z])|°"
    r"|(?<=\d)\s*degrees?\b|^\s*(?:\\approx|≈|\\sim)(?![A-Za-z])"
)
_THOUSANDS = re.compile(r"(?<=\d)(?:\{,\}|(?<!\\)\\,)(?=\d{3}(?!\d))")
_SPACE = re.compile(r"(?<!\\)\\[,;: ]|\\q?quad(?![A-Za-z])|~")
_IN_TEXT = re.compile(r"\\(?:text(?:bf|it|rm|sf|tt|normal)?|math(?:rm|bf|it|sf)|mbox|operatorname)\s*\{([^{}]*)\}")
_TIMES = re.compile(r"\\times(?![A-Za-z])|(?<=\S)\s*\*\s*(?=\S)|×|(?<=\d)\s*[xX]\s*(?=10\^)")
_PERCENT = re.compile(r"(?<!\\)\\%|(?<=\d)\s*per ?cent\b")
_FRACTION = re.compile(r"\\[dtc]?frac(?![A-Za-z])\s*(\d|\{[^{}]*\})\s*(\d|\{)|\\[dtc]frac(?![A-Za-z])")
_BRACES = re.compile(r"(\\sqrt)\s*(\w)|([\^_])\s*\{\s*(\w)\s*\}")
_SIGNS = {
    r"\leq": r"\le", r"\geq": r"\ge", r"\neq": r"\ne", r"\lbrace": r"\{", r"\rbrace": r"\}", "∞": r"\infty ",
    r"+\infty": r"\infty ", r"+ \infty": r"\infty ", r"\varnothing": r"\emptyset ", "∅": r"\emptyset ",
    r"\{\}": r"\emptyset ", r"\{ \}": r"\emptyset ",
}  # fmt: skip
"""Signs that are written in two ways."""


def _one_spelling(text: str) -> str:
    """Write what LaTeX can in several ways in one."""
    text = _GONE.sub("", _THOUSANDS.sub(",", text))
    text = _TIMES.sub(r"\\cdot ", _PERCENT.sub("%", _IN_TEXT.sub(r" \1 ", _SPACE.sub(" ", text))))
    for sign, same in _SIGNS.items():
        text = text.replace(sign, same)
    return _BRACES.sub(_braced, _FRACTION.sub(_fraction, text))


def _fraction(found: re.Match[str]) -> str:
    top, bottom = (f"{{{part}}}" if part and part.isdigit() else part or "" for part in found.groups())
    return rf"\frac{top}{bottom}"


def _braced(found: re.Match[str]) -> str:
    return f"{found[1]}{{{found[2]}}}" if found[1] else f"{found[3]}{found[4]}"


_CHARACTERS = str.maketrans({
    "−": "-", "–": "-", "π": r"\pi ", "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ", "∪": r"\cup ", "’": "'", "‘": "'",
    "\u200b": "", "\u200c": "", "\u200d": "", "\ufeff": "",
})  # fmt: skip
_SCRIPT = re.compile("([⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ]+)|[₀₁₂₃₄₅₆₇₈₉₊₋ₙ]+")
_LEVEL = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ₀₁₂₃₄₅₆₇₈₉₊₋ₙ", 2 * "0123456789+-n")

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
    return _form(_bare(_one_spelling(text)), 0) or None


def _in_ascii(text: str) -> str:
    """Write fractions, raised and lowered digits and signs in plain text."""
    text = _SCRIPT.sub(lambda run: ("^" if run[1] else "_") + f"{{{run[0].translate(_LEVEL)}}}", text)
    text = re.sub(r"(?<=\d)(?=[¼-¾⅐-⅞])", " ", text)
    return unicodedata.normalize("NFKC", text.translate(_CHARACTERS)).replace("⁄", "/").translate(_CHARACTERS)


def _bare(text: str) -> str:
    """Strip punctuation, quotes, marks and boxes."""
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
    """Return the form of an answer, or of a part in brackets."""
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
    found = _VALUE.fullmatch(text)
    if not found:
        return None
    given = {name: value for name, value in found.groupdict().items() if value is not None}
    part = {name: value.replace(",", "").replace(" ", "") for name, value in given.items()}
    if "again" in part:  # 0.1666… and the like
        fixed, again = part["fixed"], part["again"]
        rest = Fraction(int(again), 10 ** len(again) - 1)
        value = (int(part["start"] + fixed or "0") + rest) / Fraction(10) ** len(fixed)
        return -value if part["sign"] == "-" else value
    top = next(Fraction(part[name]) for name in ("n1", "n2", "n3", "n4") if name in part)
    bottom = next((Fraction(part[name]) for name in ("d1", "d2", "d3") if name in part), Fraction(1))
    if bottom == 0:
        return None
    value = Fraction(part.get("whole", "0")) + top / bottom
    value *= Fraction(10) ** int(part.get("e", "0").strip("{} ")) * _WORTH.get(part.get("word", ""), 1)
    return -value if part["sign"] == "-" else value


_MOST_PLACES = 20


def _shown(value: Fraction) -> str:
    """Write a short exact decimal, else a fraction in lowest terms."""
    if 10**_MOST_PLACES % value.denominator:
        return f"{value.numerator}/{value.denominator}"
    digits = str(abs(value.numerator) * (10**_MOST_PLACES // value.denominator)).zfill(_MOST_PLACES + 1)
    return "-" * (value < 0) + f"{digits[:-_MOST_PLACES]}.{digits[-_MOST_PLACES:]}".rstrip("0").rstrip(".")
