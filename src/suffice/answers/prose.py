"""Text as a person reads it: sentences, without marks of layout, and what is marked in it."""

import re

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
"""Emphasis, headings, bullets, the signs around formulas, references, and small pictures."""
_BOLD = re.compile(r"\*\*([^*\n]{1,120})\*\*|__([^_\n]{1,120})__")
_CODE = re.compile(r"`([^`\n]{1,120})`")


def unfenced(text: str) -> str:
    """The text in a fence that stands around the whole of it."""
    fenced = FENCE.fullmatch(text.strip())
    return fenced[1].strip() if fenced and "```" not in fenced[1] else text.strip()


def without_fences(text: str) -> str:
    """The text around fenced blocks."""
    return FENCE.sub("\n", text)


def unmarked(text: str) -> str:
    """The text without marks.

    >>> unmarked("**So** it is `4 True`, or $x_1$."), unmarked("It costs $5.")
    ('So it is 4 True, or x_1.', 'It costs $5.')
    """
    return _MARKS.sub("", text).strip()


def in_bold(text: str) -> list[str]:
    """The parts of a text that are in bold."""
    return [one or other for one, other in _BOLD.findall(text)]


def marked(text: str) -> list[str]:
    """What a text itself sets apart: a fenced block, or else what is in bold, or else as code."""
    return FENCE.findall(text) or in_bold(text) or _CODE.findall(text)


def boxed(text: str) -> str | None:
    r"""What is in the last balanced `\boxed{…}` or `\fbox{…}`."""
    found = None
    open_groups: list[int | None] = []
    for token in re.finditer(r"\\(?:boxed|fbox)\s*\{|\\.|[{}]", text, re.DOTALL):
        if token[0] == "{":
            open_groups.append(None)
        elif token[0].endswith("{") and len(token[0]) > 2:
            open_groups.append(token.end())
        elif token[0] == "}" and open_groups:
            start = open_groups.pop()
            if start is not None:
                found = (start, token.start())
    return (text[slice(*found)].strip() or None) if found else None


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
    """A text of so many characters at most: as many of its beginning as of its end."""
    half = most // 2
    return text if len(text) <= most else f"{text[:half]}\n\n{text[-half:]}"
