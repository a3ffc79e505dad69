"""From an answer as it was written to its canonical form: equal forms are the same answer."""

import re
import unicodedata
from fractions import Fraction

from suffice.answers.brackets import split

LONGEST = 1000
"""Characters up to which an answer is read as a formula; longer ones are compared as they stand."""

_DEEPEST = 20

_SPELLINGS = [
    (r"\\(?:left|right)\s*\.|\\(?:left|right|[bB]igg?[lr]?|displaystyle|limits)(?![A-Za-z])", ""),
    (r"\\!", ""),
    (r"(?<=\d)(?:\{,\}|\\,|,\s)(?=\d{3}(?!\d)(?!.*[,)\]}]))", ","),
    (r"\\[,;: ]|\\q?quad(?![A-Za-z])|~", " "),
    (r"\\[()\[\]]|\\?\$", ""),
    (r"\\[dtc]frac(?![A-Za-z])", r"\\frac"),
    (r"\\(?:text(?:bf|it|rm|sf|tt|normal)?|math(?:rm|bf|it|sf)|mbox|operatorname)\s*\{([^{}]*)\}", r" \1 "),
    (r"\^\s*\{?\s*\\(?:circ|degree)\s*\}?|\\degree(?![A-Za-z])|°|(?<=\d)\s*degrees?\b", ""),
    (r"\\%", "%"),
    (r"\\(le|ge|ne)q(?![A-Za-z])", r"\\\1"),
    (r"\\times(?![A-Za-z])|(?<=\S)\s*\*\s*(?=\S)|×", r"\\cdot "),
    (r"\\lbrace(?![A-Za-z])", r"\\{"),
    (r"\\rbrace(?![A-Za-z])", r"\\}"),
    (r"\+\s*\\infty(?![A-Za-z])|∞|\\infin(?![A-Za-z])", r"\\infty "),
    (r"\\frac\s*(\d)\s*(\d)", r"\\frac{\1}{\2}"),
    (r"\\frac\s*(\d)\s*\{", r"\\frac{\1}{"),
    (r"(\\frac\s*\{[^{}]*\})\s*(\d)", r"\1{\2}"),
    (r"\\sqrt\s*(\w)", r"\\sqrt{\1}"),
    (r"([\^_])\s*\{\s*(\w)\s*\}", r"\1\2"),
]
_SPELLINGS_COMPILED = [(re.compile(pattern, re.DOTALL), same) for pattern, same in _SPELLINGS]

_CHARACTERS = str.maketrans(
    {
        "−": "-",
        "–": "-",
        "²": "^2",
        "³": "^3",
        "π": r"\pi ",
        "≤": r"\le ",
        "≥": r"\ge ",
        "≠": r"\ne ",
        "⁄": "/",
        "∪": r"\cup ",
    }
)

_NAMED = re.compile(r"\s*[A-Za-z](?:_\w|_\{\w+\}|\([A-Za-z]\))?\s*(?:=|\\in(?![A-Za-z]))\s*(?=\S)")
_RELATIONS = re.compile(r"[=<>]|\\(?:le|ge|ne|in)(?![A-Za-z])")
_WORDS = re.compile(r"[^\W\d_]+(?:[\s'’-]+[^\W\d_]+)*")


def normalise(text: str) -> str | None:
    r"""The canonical form of an answer, or None where nothing is left of it.

    >>> [normalise(text) for text in (r"\dfrac{1}{2}", "0.50", "1,234", r"x = \text{Yes}", "(1, 2)")]
    ['0.5', '0.5', '1234', 'yes', '(1,2)']
    """
    if len(text) > LONGEST:
        return " ".join(text.split())
    text = unicodedata.normalize("NFKC", text.translate(_CHARACTERS)).translate(_CHARACTERS)
    text = _bare(text)
    for pattern, same in _SPELLINGS_COMPILED:
        text = pattern.sub(same, text)
    return _form(_bare(text), 0) or None


def _bare(text: str) -> str:
    """Without the punctuation, quotes and marks that stand around an answer, and the box that may be in another."""
    before = None
    while text != before:
        before = text
        text = text.strip().strip('`"“”‘’*').rstrip(".,;:").strip()
        text = re.sub(r"(?<=[^\W\d_]{2})!+$", "", text)  # an exclamation, not a factorial
        wrapped = re.fullmatch(r"\\(?:boxed|fbox)\s*\{(.*)\}|\$(.*)\$|\{([^{}]*)\}", text, re.DOTALL)
        if wrapped:
            text = next(part for part in wrapped.groups() if part is not None)
    return text


def _form(text: str, depth: int) -> str:
    """The form of a whole answer, or of a part in brackets."""
    text = " ".join(_bare(text).split())
    named = _NAMED.match(text)
    if named and not _RELATIONS.search(text, named.end()):
        text = text[named.end() :]
    if _WORDS.fullmatch(text):
        return text.lower() if len(text) > 2 or text.lower() == "no" else text
    value = _value(text.removesuffix("%").rstrip())
    if value is not None:
        return _shown(value) + "%" * text.endswith("%")
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


_DECIMAL = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d*)?|\d+(?:\.\d*)?|\.\d+)"
_VALUE = re.compile(
    rf"(?P<sign>[-+]?) ?(?:"
    rf"(?P<whole>\d+) ?\\frac ?\{{ ?(?P<n1>\d+) ?\}} ?\{{ ?(?P<d1>\d+) ?\}}"
    rf"|(?P<whole2>\d+) (?P<n2>\d+) ?/ ?(?P<d2>\d+)"
    rf"|\\frac ?\{{ ?(?P<n3>-?{_DECIMAL}) ?\}} ?\{{ ?(?P<d3>-?{_DECIMAL}) ?\}}"
    rf"|(?P<n4>{_DECIMAL}) ?/ ?(?P<d4>{_DECIMAL})"
    rf"|(?P<n5>{_DECIMAL})(?:(?:[eE]| ?\\cdot ?10 ?\^)(?P<e>[-+]?\d|\{{? ?[-+]?\d{{1,2}} ?\}}|[-+]?\d{{2}}))?)"
)


def _value(text: str) -> Fraction | None:
    """The number that a text writes, exactly."""
    found = _VALUE.fullmatch(text)
    if not found:
        return None
    part = {name: value.replace(",", "") for name, value in found.groupdict().items() if value is not None}
    top = next(Fraction(part[name]) for name in ("n1", "n2", "n3", "n4", "n5") if name in part)
    bottom = next((Fraction(part[name]) for name in ("d1", "d2", "d3", "d4") if name in part), Fraction(1))
    if bottom == 0:
        return None
    value = Fraction(part.get("whole", part.get("whole2", "0"))) + top / bottom
    value *= Fraction(10) ** int(part.get("e", "0").strip("{} "))
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
