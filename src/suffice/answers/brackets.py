"""The parts of an answer: of a tuple, a set, an interval or a plain list."""

import re
from typing import Any

OPENING, CLOSING = ("(", "[", r"\{"), (")", "]", r"\}")


def split(text: str) -> tuple[str, list[str], str]:
    r"""The bracket that opens the whole, what stands between the commas in it, and the bracket that closes it.

    >>> split("(1,[2,3])"), split("1,2"), split(r"(1,2)\cup(3,4)")
    (('(', ['1', '[2,3]'], ')'), ('', ['1', '2'], ''), ('', ['(1,2)\\cup(3,4)'], ''))
    """
    tokens = re.findall(r"\\.|.", text, re.DOTALL)
    if len(tokens) > 2 and tokens[0] in OPENING and tokens[-1] in CLOSING:
        parts = _between_commas(tokens[1:-1])
        if parts:
            return tokens[0], parts, tokens[-1]
    return "", _between_commas(tokens) or [text], ""


def _between_commas(tokens: list[str]) -> list[str]:
    """What stands between the commas outside brackets; nothing where brackets don't pair."""
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
    r"""The parts within parts, as [opening, parts, closing], down to formulas.

    >>> structure(r"(1,\{2,x\})")
    ['(', ['1', ['\\{', ['2', 'x'], '\\}']], ')']
    """
    opens, parts, closes = split(text)
    if not opens and len(parts) == 1:
        return text
    return [opens, [structure(part) for part in parts], closes]
