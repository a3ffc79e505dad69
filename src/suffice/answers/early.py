"""What the beginning of a response tells of its end: whether there can still be an answer in it."""

import re

ENOUGH = 400
"""Characters after which a response that has shown no sign of an answer is taken to have none."""

_SIGN = re.compile(r"\d|\\|=|\banswer\b|\b(?:yes|no|true|false)\b|\([A-J]\)|\*\*", re.IGNORECASE)


def is_hopeless(text: str) -> bool:
    """Whether prose has gone on for long with no number, formula, letter or verdict that an answer would come from.

    >>> is_hopeless("Once upon a time " * 30), is_hopeless("First, 48 / 2 = 24. " * 30), is_hopeless("Paris")
    (True, False, False)
    """
    return len(text) > ENOUGH and _SIGN.search(text) is None
